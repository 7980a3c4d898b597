"""A hidden Markov model for weather stations: forward, backward, Baum-Welch and Viterbi over symbol sequences."""

import numpy as np


def simulate(A, B, pi, length, rng):
    states, symbols = np.zeros(length, int), np.zeros(length, int)
    s = rng.choice(len(pi), p=pi)
    for t in range(length):
        states[t] = s
        symbols[t] = rng.choice(B.shape[1], p=B[s])
        s = rng.choice(len(pi), p=A[s])
    return states, symbols


def forward(A, B, pi, obs):
    T = len(obs)
    alpha = np.zeros((T, len(pi)))
    scale = np.zeros(T)
    alpha[0] = pi * B[:, obs[0]]
    scale[0] = alpha[0].sum()
    alpha[0] /= scale[0]
    for t in range(1, T):
        alpha[t] = (alpha[t - 1] @ A) * B[:, obs[t]]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    return alpha, scale


def backward(A, B, obs, scale):
    T = len(obs)
    beta = np.ones((T, A.shape[0]))
    for t in range(T - 2, -1, -1):
        beta[t] = A @ (B[:, obs[t + 1]] * beta[t + 1]) / scale[t + 1]
    return beta


def baum_welch(A, B, pi, obs):
    alpha, scale = forward(A, B, pi, obs)
    beta = backward(A, B, obs, scale)
    gamma = alpha * beta
    gamma /= gamma.sum(axis=1, keepdims=True)
    later = (B[:, obs[1:]].T * beta[1:]) / scale[1:, None]
    xi = np.einsum("ti,ij,tj->ij", alpha[:-1], A, later)
    A = xi / gamma[:-1].sum(axis=0)[:, None]
    A /= A.sum(axis=1, keepdims=True)
    new = np.zeros_like(B)
    for k in range(B.shape[1]):
        new[:, k] = gamma[obs == k].sum(axis=0)
    return A, new / gamma.sum(axis=0)[:, None], gamma[0], np.log(scale).sum()


def viterbi(A, B, pi, obs):
    T, n = len(obs), len(pi)
    logA, logB = np.log(A + 1e-300), np.log(B + 1e-300)
    delta = np.log(pi + 1e-300) + logB[:, obs[0]]
    back = np.zeros((T, n), int)
    for t in range(1, T):
        scores = delta[:, None] + logA
        back[t] = scores.argmax(axis=0)
        delta = scores[back[t], np.arange(n)] + logB[:, obs[t]]
    path = np.zeros(T, int)
    path[-1] = delta.argmax()
    for t in range(T - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path


def run(steps, n=64, symbols=16, length=200):
    rng = np.random.default_rng(0)
    A = rng.dirichlet(np.ones(n), n)
    B = rng.dirichlet(np.ones(symbols), n)
    pi = np.full(n, 1 / n)
    _, obs = simulate(A, B, pi, length, rng)
    A = rng.dirichlet(np.ones(n), n)
    B = rng.dirichlet(np.ones(symbols), n)
    loglik = []
    for _ in range(steps):
        A, B, pi, ll = baum_welch(A, B, pi, obs)
        loglik.append(ll)
    return {"A": A, "B": B, "loglik": np.array(loglik), "path": viterbi(A, B, pi, obs)}
