"""Studies: factors and levels over a plan and a target, and the figures that compare them."""
