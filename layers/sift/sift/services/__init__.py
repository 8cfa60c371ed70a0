"""What sift does with its jobs, on ports that know neither AWS nor HTTP."""
