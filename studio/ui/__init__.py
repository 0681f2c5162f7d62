"""The page: layout and wiring on top of :mod:`studio`. Nothing in here knows how sound is made."""
