"""The fetch pipeline: a URL in, guarded bytes, then Markdown or text out; knows neither AWS nor jobs."""
