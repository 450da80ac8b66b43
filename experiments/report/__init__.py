"""Reports: their content, and how it is written as HTML, Markdown, CSV and SVG."""
