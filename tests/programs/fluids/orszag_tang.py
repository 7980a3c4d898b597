"""Magnetohydrodynamics on a periodic square: finite volumes with constrained transport (the Orszag-Tang vortex)."""

import numpy as np

R, L = -1, 1


def curl(Az, dx):
    return (Az - np.roll(Az, L, axis=1)) / dx, -(Az - np.roll(Az, L, axis=0)) / dx


def averaged(bx, by):
    return 0.5 * (bx + np.roll(bx, L, axis=0)), 0.5 * (by + np.roll(by, L, axis=1))


def conserved(rho, vx, vy, P, Bx, By, gamma, vol):
    mass = rho * vol
    energy = ((P - 0.5 * (Bx**2 + By**2)) / (gamma - 1) + 0.5 * rho * (vx**2 + vy**2) + 0.5 * (Bx**2 + By**2)) * vol
    return mass, rho * vx * vol, rho * vy * vol, energy


def primitive(mass, mx, my, energy, Bx, By, gamma, vol):
    rho = mass / vol
    vx, vy = mx / rho / vol, my / rho / vol
    P = (energy / vol - 0.5 * rho * (vx**2 + vy**2) - 0.5 * (Bx**2 + By**2)) * (gamma - 1) + 0.5 * (Bx**2 + By**2)
    return rho, vx, vy, P


def gradient(f, dx):
    return tuple((np.roll(f, R, axis=a) - np.roll(f, L, axis=a)) / (2 * dx) for a in (0, 1))


def slope_limit(f, dx, fdx, fdy):
    tiny = 1.0e-8 * (fdx == 0)
    fdx = np.maximum(0.0, np.minimum(1.0, ((f - np.roll(f, L, axis=0)) / dx) / (fdx + tiny))) * fdx
    fdx = np.maximum(0.0, np.minimum(1.0, (-(f - np.roll(f, R, axis=0)) / dx) / (fdx + 1.0e-8 * (fdx == 0)))) * fdx
    tiny = 1.0e-8 * (fdy == 0)
    fdy = np.maximum(0.0, np.minimum(1.0, ((f - np.roll(f, L, axis=1)) / dx) / (fdy + tiny))) * fdy
    fdy = np.maximum(0.0, np.minimum(1.0, (-(f - np.roll(f, R, axis=1)) / dx) / (fdy + 1.0e-8 * (fdy == 0)))) * fdy
    return fdx, fdy


def faces(f, fdx, fdy, dx):
    xl, xr = np.roll(f - fdx * dx / 2, R, axis=0), f + fdx * dx / 2
    yl, yr = np.roll(f - fdy * dx / 2, R, axis=1), f + fdy * dx / 2
    return xl, xr, yl, yr


def rusanov(left, right, gamma):
    rl, vxl, vyl, Pl, Bxl, Byl = left
    rr, vxr, vyr, Pr, Bxr, Byr = right
    enl = (Pl - 0.5 * (Bxl**2 + Byl**2)) / (gamma - 1) + 0.5 * rl * (vxl**2 + vyl**2) + 0.5 * (Bxl**2 + Byl**2)
    enr = (Pr - 0.5 * (Bxr**2 + Byr**2)) / (gamma - 1) + 0.5 * rr * (vxr**2 + vyr**2) + 0.5 * (Bxr**2 + Byr**2)
    r, mx, my = 0.5 * (rl + rr), 0.5 * (rl * vxl + rr * vxr), 0.5 * (rl * vyl + rr * vyr)
    en, Bx, By = 0.5 * (enl + enr), 0.5 * (Bxl + Bxr), 0.5 * (Byl + Byr)
    P = (gamma - 1) * (en - 0.5 * (mx**2 + my**2) / r - 0.5 * (Bx**2 + By**2)) + 0.5 * (Bx**2 + By**2)
    flux = [mx, mx**2 / r + P - Bx * Bx, mx * my / r - Bx * By, (en + P) * mx / r - Bx * (Bx * mx + By * my) / r]
    flux.append(By * mx / r - Bx * my / r)

    def speed(rho, v, P, Bx, By):
        c0 = np.sqrt(gamma * (P - 0.5 * (Bx**2 + By**2)) / rho)
        ca = np.sqrt((Bx**2 + By**2) / rho)
        return np.sqrt(0.5 * (c0**2 + ca**2) + 0.5 * np.sqrt((c0**2 + ca**2) ** 2)) + np.abs(v)

    C = np.maximum(speed(rl, vxl, Pl, Bxl, Byl), speed(rr, vxr, Pr, Bxr, Byr))
    jumps = (rl - rr, rl * vxl - rr * vxr, rl * vyl - rr * vyr, enl - enr, Byl - Byr)
    return [f - 0.5 * C * j for f, j in zip(flux, jumps)]


def run(steps, N=64):
    gamma, courant, dx = 5 / 3, 0.4, 1.0 / N
    vol = dx**2
    x = np.linspace(0.5 * dx, 1 - 0.5 * dx, N)
    Y, X = np.meshgrid(x, x)
    rho = gamma**2 / (4 * np.pi) * np.ones(X.shape)
    vx, vy = -np.sin(2 * np.pi * Y), np.sin(2 * np.pi * X)
    P = gamma / (4 * np.pi) * np.ones(X.shape)
    nodes = np.linspace(dx, 1, N)
    Yn, Xn = np.meshgrid(nodes, nodes)
    Az = np.cos(4 * np.pi * Xn) / (4 * np.pi * np.sqrt(4 * np.pi)) + np.cos(2 * np.pi * Yn) / (
        2 * np.pi * np.sqrt(4 * np.pi)
    )
    bx, by = curl(Az, dx)
    Bx, By = averaged(bx, by)
    P = P + 0.5 * (Bx**2 + By**2)
    mass, mx, my, energy = conserved(rho, vx, vy, P, Bx, By, gamma, vol)
    t, divs = 0.0, []
    for i in range(steps):
        Bx, By = averaged(bx, by)
        rho, vx, vy, P = primitive(mass, mx, my, energy, Bx, By, gamma, vol)
        c0 = np.sqrt(gamma * (P - 0.5 * (Bx**2 + By**2)) / rho)
        ca = np.sqrt((Bx**2 + By**2) / rho)
        dt = courant * np.min(dx / (np.sqrt(c0**2 + ca**2) + np.sqrt(vx**2 + vy**2)))
        state = [rho, vx, vy, P, Bx, By]
        xs, ys = [], []
        for f in state:
            fdx, fdy = slope_limit(f, dx, *gradient(f, dx))
            xl, xr, yl, yr = faces(f, fdx, fdy, dx)
            xs.append((xl, xr))
            ys.append((yl, yr))
        fx = rusanov([a for a, _ in xs], [b for _, b in xs], gamma)
        swap = [0, 2, 1, 3, 5, 4]
        fy = rusanov([ys[k][0] for k in swap], [ys[k][1] for k in swap], gamma)
        fy[1], fy[2] = fy[2], fy[1]
        for q, a, b in zip((mass, mx, my, energy), fx, fy):
            q += -dt * dx * (a - np.roll(a, L, axis=0) + b - np.roll(b, L, axis=1))
        Ez = 0.25 * (-fx[4] - np.roll(fx[4], R, axis=1) + fy[4] + np.roll(fy[4], R, axis=0))
        dbx, dby = curl(-Ez, dx)
        bx = bx + dt * dbx
        by = by + dt * dby
        t += dt
        divs.append(np.mean(np.abs((bx - np.roll(bx, L, axis=0) + by - np.roll(by, L, axis=1)) / dx)))
    return {"rho": rho, "P": P, "bx": bx, "t": t, "div": np.array(divs) < 1e-10}
