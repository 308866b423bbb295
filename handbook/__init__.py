"""`./ma docs`: the site of docs/, with a reference that is generated from the code."""
