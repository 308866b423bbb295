"""What the archive tells: each job is a list of functions DataFrame → DataFrame. No session, no reading, no
writing."""
