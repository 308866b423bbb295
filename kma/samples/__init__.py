"""Agents of the demo, of the tests of the whole product and of the benches."""
