"""What to buy: from a need, stated or measured, to the arrays and servers that hold it, with reasons."""
