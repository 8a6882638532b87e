"""What a run leaves behind: manifest, points and series in one folder, and the way to read them back."""
