"""Photometry of a field of stars: background, detection, centroids and fluxes in apertures, frame by frame."""

import numpy as np
from scipy import ndimage


class Camera:
    def __init__(self, shape=(160, 200), stars=40, seed=3):
        self.rng = np.random.default_rng(seed)
        self.shape = shape
        self.y = self.rng.uniform(8, shape[0] - 8, stars)
        self.x = self.rng.uniform(8, shape[1] - 8, stars)
        self.flux = self.rng.pareto(2.0, stars) * 800.0 + 300.0
        self.period = self.rng.uniform(5, 30, stars)
        yy, xx = np.mgrid[: shape[0], : shape[1]]
        self.yy, self.xx = yy.astype(float), xx.astype(float)

    def expose(self, t):
        """One frame with seeing, a sloping sky and read noise."""
        seeing = 1.6 + 0.3 * np.sin(0.2 * t)
        image = 100.0 + 0.05 * self.xx + 0.02 * self.yy
        brightness = self.flux * (1.0 + 0.2 * np.sin(2 * np.pi * t / self.period))
        for y, x, f in zip(self.y, self.x, brightness):
            r2 = (self.yy - y) ** 2 + (self.xx - x) ** 2
            image += f / (2 * np.pi * seeing**2) * np.exp(-r2 / (2 * seeing**2))
        noise = self.rng.normal(0.0, 2.0, self.shape)
        return image + noise


def sky_background(image, box=20):
    """Sigma-clipped medians of boxes, smoothed and interpolated to the frame."""
    ny, nx = image.shape[0] // box, image.shape[1] // box
    boxes = image.reshape(ny, box, nx, box).swapaxes(1, 2).reshape(ny, nx, box * box)
    level = np.median(boxes, axis=2)
    spread = boxes.std(axis=2)
    for _ in range(3):
        keep = np.abs(boxes - level[..., None]) < 2.5 * spread[..., None]
        count = keep.sum(axis=2)
        level = (boxes * keep).sum(axis=2) / count
        spread = np.sqrt((keep * (boxes - level[..., None]) ** 2).sum(axis=2) / count)
    level = ndimage.median_filter(level, size=3)
    return ndimage.zoom(level, box, order=1, mode="nearest"), np.median(spread)


def detect(image, sigma, least=5):
    smooth = ndimage.gaussian_filter(image, 1.2)
    mask = smooth > 1.5 * sigma
    labels, count = ndimage.label(mask)
    sizes = np.bincount(labels.ravel())
    keep = sizes >= least
    keep[0] = False
    return keep[labels], labels, count


def brightest(image, mask, number=12):
    """The positions of the highest local maxima among what was detected."""
    peak = (ndimage.maximum_filter(image, size=7) == image) & mask
    values = np.where(peak, image, -np.inf).ravel()
    order = np.argsort(values)[::-1][:number]
    return order // image.shape[1], order % image.shape[1]


def centroid(image, rows, columns, half=4):
    """Centres of mass in windows around pixels."""
    offsets = np.arange(-half, half + 1)
    yy = np.clip(rows[:, None] + offsets, 0, image.shape[0] - 1)
    xx = np.clip(columns[:, None] + offsets, 0, image.shape[1] - 1)
    cut = np.clip(image[yy[:, :, None], xx[:, None, :]], 0.0, None)
    total = cut.sum(axis=(1, 2))
    cy = (cut * yy[:, :, None]).sum(axis=(1, 2)) / total
    cx = (cut * xx[:, None, :]).sum(axis=(1, 2)) / total
    return cy, cx


def aperture_flux(image, cy, cx, yy, xx, radius=5.0):
    flux = np.empty(len(cy))
    for i in range(len(cy)):
        r = np.hypot(yy - cy[i], xx - cx[i])
        inside = np.clip(radius + 0.5 - r, 0.0, 1.0)
        ring = (r > radius + 2) & (r < radius + 5)
        sky = np.median(image[ring])
        flux[i] = np.sum(inside * (image - sky))
    return flux


def run(steps):
    camera = Camera()
    curves, counts, skies = [], [], []
    for t in range(steps):
        frame = camera.expose(t)
        sky, sigma = sky_background(frame)
        image = frame - sky
        mask, labels, count = detect(image, sigma)
        rows, columns = brightest(image, mask)
        cy, cx = centroid(image, rows, columns)
        curves.append(aperture_flux(image, cy, cx, camera.yy, camera.xx))
        counts.append(count)
        skies.append(sky.mean())
    return {"curves": np.array(curves), "counts": np.array(counts), "skies": np.array(skies)}
