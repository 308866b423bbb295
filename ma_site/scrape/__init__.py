"""/metrics of the site: what is declared, what the rows say of it, and who may read it."""
