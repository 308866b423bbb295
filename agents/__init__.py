"""Servers, pools, destinations, launch settings, activations, runs, desired state; the API of the KMAs."""
