"""Parallel-beam tomography: projections by interpolation, filtered back projection and SIRT."""

import numpy as np
from scipy import ndimage
from scipy.interpolate import interp1d

ELLIPSES = [
    (1.0, 0.69, 0.92, 0.0, 0.0, 0),
    (-0.8, 0.6624, 0.874, 0.0, -0.0184, 0),
    (-0.2, 0.11, 0.31, 0.22, 0.0, -18),
    (-0.2, 0.16, 0.41, -0.22, 0.0, 18),
    (0.1, 0.21, 0.25, 0.0, 0.35, 0),
    (0.1, 0.046, 0.046, 0.0, 0.1, 0),
]


def phantom(n):
    y, x = np.mgrid[-1 : 1 : n * 1j, -1 : 1 : n * 1j]
    img = np.zeros((n, n))
    for val, a, b, x0, y0, phi in ELLIPSES:
        p = np.deg2rad(phi)
        xr = (x - x0) * np.cos(p) + (y - y0) * np.sin(p)
        yr = -(x - x0) * np.sin(p) + (y - y0) * np.cos(p)
        img[(xr / a) ** 2 + (yr / b) ** 2 <= 1] += val
    return img


def project_one(image, angle):
    rotated = ndimage.rotate(image, angle, reshape=False, order=1)
    return rotated.sum(axis=0)


def forward(image, angles):
    return np.array([project_one(image, a) for a in angles])


def ramp_filter(sino):
    n = sino.shape[1]
    size = max(64, int(2 ** np.ceil(np.log2(2 * n))))
    f = np.fft.fftfreq(size)
    window = 2 * np.abs(f) * (0.54 + 0.46 * np.cos(2 * np.pi * f))
    padded = np.pad(sino, ((0, 0), (0, size - n)))
    return np.real(np.fft.ifft(np.fft.fft(padded, axis=1) * window, axis=1))[:, :n]


def backproject_one(row, angle, x, y):
    t = np.deg2rad(angle)
    pos = x * np.cos(t) + y * np.sin(t)
    n = len(row)
    f = interp1d(np.arange(n) - (n - 1) / 2, row, bounds_error=False, fill_value=0.0)
    return f(pos)


def backproject(sino, angles):
    n = sino.shape[1]
    c = np.arange(n) - (n - 1) / 2
    x, y = np.meshgrid(c, c)
    out = np.zeros((n, n))
    for row, angle in zip(sino, angles):
        out += backproject_one(row, angle, x, y)
    return out * np.pi / (2 * len(angles))


def sirt_update(image, sino, angles, norm, relax=0.8):
    residual = (sino - forward(image, angles)) / norm
    image = image + relax * backproject(residual, angles)
    return np.clip(image, 0, None), np.sqrt(np.mean(residual**2))


def psnr(a, b):
    mse = np.mean((a - b) ** 2)
    return 10 * np.log10((b.max() - b.min()) ** 2 / mse)


def total_variation(a):
    gy, gx = np.gradient(a)
    return np.hypot(gx, gy).sum()


def run(steps):
    n = 96
    img = phantom(n)
    angles = np.linspace(0, 180, 30, endpoint=False)
    sino = forward(img, angles)
    fbp = backproject(ramp_filter(sino), angles)
    rec, errors = np.zeros_like(img), []
    for k in range(max(steps // 2, 2)):
        rec, r = sirt_update(rec, sino, angles, norm=n)
        errors.append((r, psnr(rec, img), total_variation(rec)))
    return {"fbp": fbp, "rec": rec, "errors": np.array(errors), "psnr": psnr(fbp, img)}
