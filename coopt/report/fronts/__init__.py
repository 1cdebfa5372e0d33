"""A front of cost against time: in words and tables, as a spreadsheet, as a picture, as a page."""
