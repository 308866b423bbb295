"""What `manage.py dlq` does beyond listing and export: it asks the REST interface, inside of this process, in
the name of a person. So it can do what that can, with the same checks, rights and entries in the audit."""
