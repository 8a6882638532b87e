"""What kinds of transactions on databases share: each kind is an application of its own."""
