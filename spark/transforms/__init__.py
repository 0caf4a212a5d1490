"""Pure functions from data frame to data frame, named for what they give."""
