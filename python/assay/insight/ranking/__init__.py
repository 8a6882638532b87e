"""Where a result stands among reference figures: drives and volumes of each class, and the user's own history."""
