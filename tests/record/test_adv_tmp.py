import contextlib, copy, functools, os, dataclasses
from typing import Any
import numpy as np, pytest
from scipy import interpolate, sparse
from tests.record.test_library import cached, some, scaled, Node
from tests.record.conftest import *

def test_info(check):
    def worlds():
        w,_=cached(); return lambda i: (some(i), w)
    def work(x, w):
        a = w(4); b = w.cache_info().hits
        return x*a, b
    check(work, worlds=worlds, reason="call.opaque")
    def clear(x, w):
        a = w(4); w.cache_clear(); b = w(4)
        return x*a+b, a is b
    check(clear, worlds=worlds, reason="call.opaque")
    def clear(x, w):
        a = w(4); w.cache_clear(); b = w(4)
        return x*a+b
    check(clear, worlds=worlds, reason="call.opaque")

def test_alias(check):
    def worlds():
        w,_=cached(); return lambda i: (w(4), some(i), w)
    def work(t, x, w):
        t += x
        return t + w(4), w(4)
    check(work, worlds=worlds)

def test_touched_in_with(check):
    @contextlib.contextmanager
    def saved(box, x):
        before = x * 2
        yield before
        box.saved = before
        box.more = [before, x]
    class Box: pass
    def work(box, x):
        with saved(box, x) as b:
            with open(os.devnull) as f: pass
            y = x + b
        return y
    check(work, worlds=lambda: lambda i: (Box(), some(i)), reason="effect.file")

def test_loops(check):
    @contextlib.contextmanager
    def relaxed(x):
        while x.max() > 1.0: x *= 0.5
        n = 0
        yield x
        while x.max() < 4.0:
            x *= 3.0; n += 1
        x += n
    def work(x, y):
        with relaxed(x) as z:
            while y.max() > 0.3:
                y = y * 0.5
                with scaled(y, 2.0): z[0] += y.max()
        return x, y
    check(work, lambda i: (abs(some(i))*(1+i%4)+.1, abs(some(i+90))+.1), calls=60, replays=5)

def test_flags_in_generator(check):
    class Log:
        def __init__(self): self.n = 0; self.hits = 0
    @contextlib.contextmanager
    def counted(log, x):
        flag = 0
        if x[0] > 0: flag = 1
        if x[1] > 0: flag += 2
        yield flag
        log.n += flag
        if flag == 3: log.hits += 1
    def work(log, x, y):
        with counted(log, x) as f:
            if y[0] > 0: y = y + 1
            if y[1] > 0: y = y * 2
            y = y + f
        if y[2] > 0: y = -y
        return y, log.n
    def worlds():
        log = Log()
        return lambda i: (log, some(i), some(i+500))
    check(work, worlds=worlds, calls=150, replays=20)

def test_twice(check):
    @contextlib.contextmanager
    def bad(x):
        yield x
        yield x
    @contextlib.contextmanager
    def none(x):
        if x[0] > 100: yield x
    def work(x):
        with bad(x) as y: z = y.sum()
        return z
    check(work, some, reason="path.exception")
    def work(x):
        with none(x) as y: z = y.sum()
        return z
    check(work, some, reason="path.exception")

def test_piecewise_once(check):
    class C:
        def __init__(self): self.n = 0
    def work(x, c):
        def f(v):
            c.n += 1
            return v * 2
        return np.piecewise(x, [x > 0], [f, 1.0]), c.n
    check(work, worlds=lambda: lambda i: (some(i), C()), replays=0)
    def over(x, c):
        def f(v, axis):
            c.n += 1
            return v.sum(axis=axis)
        return np.apply_over_axes(f, x, [0, -1]), np.apply_along_axis(func1d=lambda v: v * 2, axis=0, arr=x)
    check(over, worlds=lambda: lambda i: (some(i, 3, 4), C()), replays=3)
    def raises(x, c):
        def f(v):
            c.n += 1
            if c.n > 2: raise ValueError("no")
            return v
        return np.apply_along_axis(f, 0, x)
    check(raises, worlds=lambda: lambda i: (some(i, 3, 4), C()), reason="path.exception")

def test_copies(check):
    @dataclasses.dataclass
    class P:
        a: Any
        b: Any = None
    def work(p, x):
        try:
            q = copy.deepcopy(p)
            q.a[0] = x
            r = copy.copy(q); r.b = q; q.b = None
            s = dataclasses.replace(r, a=x)
        except ValueError:
            return None
        p.n = 3
        t = copy.copy(p); del p.n; u = copy.copy(p)
        return q, r, s, t, u, p
    def make(i):
        x = some(i)
        p = P([x, x, x[1:]], {"x": x, "y": (x, 1)})
        return p, x
    check(work, worlds=lambda: make)
    def selfref(l, x):
        c = copy.deepcopy(l)
        c.append(x)
        return c
    def make2(i):
        l = [some(i)]; l.append(l); return l, some(i+1)
    check(selfref, worlds=lambda: make2, replays=0)
    def opaque_half(p, x):
        try:
            q = copy.deepcopy(p)
            return q, q.a[0] is q.b
        finally:
            x += 1
    import threading
    def make3(i):
        a = some(i)
        return P([a, np.array(["2020-01-01"], dtype="datetime64[D]")], a), some(i)
    check(opaque_half, worlds=lambda: make3, replays=0, reason="array.unknown")

def test_sparse(check):
    held = sparse.csr_array(np.eye(4) * 3.0)
    check(lambda x: x @ held, some, reason="call.opaque")
    check(lambda x: (held * 2.0) @ x, some, reason="call.opaque")
    check(lambda x: held @ np.broadcast_to(x[:1], (4,)), some)
    check(lambda x: held @ x[:, None], some)
    empty = sparse.csr_array((3, 4))
    check(lambda x: empty @ x, some)
    none = sparse.csr_array((0, 4))
    check(lambda x: none @ x + x.sum(), some)
    spline = interpolate.CubicSpline([0, 1, 2], [1., 2, 0])
    check(lambda x: (spline(x.astype(np.float32)), spline(np.arange(3) * x[0])), some)
    check(lambda x: spline(x * 1j), some, replays=0)
    check(lambda x: spline(list(x)), some, replays=0)
    check(lambda x: (spline(x[x > 0]), spline(x[:0]), spline([0.5, 1.0]) * x[0]), some, replays=0)
    grid = interpolate.RegularGridInterpolator(([0., 1, 2], [0., 1]), np.arange(6.).reshape(3, 2), bounds_error=False, fill_value=None)
    check(lambda x: grid(x[:2]), some, replays=0)
    check(lambda x: grid((x, 0.5)), some, replays=0)
    check(lambda x: grid([x[0], x[1]]), some, replays=0)
    check(lambda x: grid((x[:3], x)), some, replays=0)
