"""Describes what every page, REST route and command of the site shares. It knows no other app."""
