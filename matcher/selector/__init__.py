"""The selector language: text to tree, tree to text, and its three-valued truth.

`tree`, `truth` and `binding` run on devices; `parser` needs lark and does not.
"""
