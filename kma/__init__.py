"""The agent container: runs agents (user code) on one server, feeds them messages, reports to the MA. No
Django."""
