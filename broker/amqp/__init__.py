"""AMQP by Proton. A process that runs user code imports the codec alone, so nothing is imported here."""
