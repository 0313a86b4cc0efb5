"""Send rows and copies of relations to other ranks."""
