"""The pages for people: rendered here, with a little JavaScript that comes from here too."""
