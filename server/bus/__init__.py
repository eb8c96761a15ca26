"""The bus only wakes others up; what happened is in the store. One node has an in-process bus."""
