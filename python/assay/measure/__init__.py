"""How a point is measured, whatever is measured: the window, following it, judging it, and its point."""
