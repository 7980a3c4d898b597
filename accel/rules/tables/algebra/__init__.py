"""Algebra: products, matrices, Fourier transforms, polynomials, convolution."""
