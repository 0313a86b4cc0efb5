"""Reports, progress, and their HTML pages and plots."""
