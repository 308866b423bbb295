"""What is watched of failures: kinds that are new, that returned after their fix, that grow."""
