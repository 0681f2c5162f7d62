"""Books: a text becomes chapters and segments, segments become takes, chosen takes become a recording."""
