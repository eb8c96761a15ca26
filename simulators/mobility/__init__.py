"""How things move. Pure: a position is a value, a step a function, and chance comes in as an argument."""
