"""How a case is computed with torch: by itself, through torch.compile, by cuBLAS."""

from .case import UNITS

EAGER = {"mean_var": "torch.var_mean", "min_max": "torch.aminmax"}


def names(case, gpu):
    """The ways that a case has. torch has one scan as good as ours: running sums; others it computes
    from them, or with indices."""
    if case.scan:
        return ["torch.cumsum", "torch.compile"] if case.fold == "inclusive_sum" and not case.in_place else []
    result = [EAGER.get(case.fold, "torch.sum")]
    if gpu and has_product(case):
        result.append("cuBLAS")
    return result + ["torch.compile"]


def has_product(case):
    """Whether a matrix product computes the case: data times ones, or data times data."""
    if case.fold == "sum" and case.dtype == "i8":  # cuBLASLt takes eight columns at least
        return not case.whole and not case.axis0 and case.length % 8 == 0
    if case.dtype != case.out or case.out not in UNITS:
        return False
    if case.whole:  # one vector times another: no type of 16 bits has its sum
        return case.fold in ("sum", "dot")
    return case.fold == "sum" or case.fold == "dot" and not case.axis0


def function(torch, types, case, eager):
    """What computes the case from flat inputs, as a user would write it."""
    out, axis, shape = types[case.out], case.axis(), case.shape()

    def matrix(x):
        return x.view(shape)

    if case.fold == "inclusive_sum":
        if case.dtype == case.out and case.out in UNITS:
            return lambda x: (matrix(x).cumsum(axis),)
        return lambda x: (matrix(x).cumsum(axis, dtype=out),)
    if case.fold == "sum":
        if case.dtype == case.out and case.out in UNITS:
            return lambda x: (matrix(x).sum(axis),)
        return lambda x: (matrix(x).sum(axis, dtype=out),)
    if case.fold == "mean_var":

        def mean_var(x):
            variance, mean = torch.var_mean(matrix(x), axis, correction=0)
            return mean, variance

        return mean_var
    if case.fold == "dot":  # products of f16 are rounded unless they are asked for in f32
        return lambda x, y: ((matrix(x).float() * matrix(y).float()).sum(axis).to(out),)
    if case.fold == "min_max":
        if eager:
            return lambda x: tuple(torch.aminmax(matrix(x), dim=axis))
        return lambda x: (matrix(x).amin(axis), matrix(x).amax(axis))
    return lambda x: (torch.where(matrix(x) > 0, matrix(x), 0).sum(axis),)


def compiled(torch, types, case, mode):
    torch._dynamo.reset()  # every shape is compiled for itself
    return torch.compile(
        function(torch, types, case, False), dynamic=False, mode=None if mode == "default" else mode
    )


def product(torch, types, case, device, pace):
    """The matrix product for a case: of several forms the one that `pace` finds fastest."""
    forms = product_forms(torch, types, case, device)
    return forms[0] if len(forms) == 1 else min(forms, key=pace)


def product_forms(torch, types, case, device):
    shape, length = case.shape(), case.length
    if case.fold == "dot":
        if case.whole:
            return [lambda x, y: (torch.dot(x, y).view(1),)]
        return [lambda x, y: (torch.bmm(x.view(-1, 1, length), y.view(-1, length, 1)).view(-1),)]
    ones = torch.ones(length, dtype=types[case.dtype], device=device)
    if case.whole:
        return [lambda x: (torch.dot(x, ones).view(1),)]
    if case.dtype == "i8":
        eight = torch.ones(length, 8, dtype=types["i8"], device=device)
        return [lambda x: (torch._int_mm(x.view(shape), eight)[:, 0].contiguous(),)]
    if case.axis0:
        row = ones[None, :]
        return [
            lambda x: (torch.mm(row, x.view(shape)).view(-1),),
            lambda x: (torch.mv(x.view(shape).t(), ones),),
        ]
    column = ones[:, None]
    return [
        lambda x: (torch.mm(x.view(shape), column).view(-1),),
        lambda x: (torch.mv(x.view(shape), ones),),
    ]
