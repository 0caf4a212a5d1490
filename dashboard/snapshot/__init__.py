"""A page as it is at this moment, as one file that needs nothing else: for whoever looks into an incident later."""
