"""Report what runs did and how far they are: reports, progress, HTML pages, plots."""
