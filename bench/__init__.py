"""Measurements on this machine: ``make bench``. Figures differ from machine to machine; the ratios say more."""
