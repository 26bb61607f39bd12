#!/usr/bin/env python3
"""Writes a training step of many operations, to measure what compiling it takes: large_graph.py SHAPE OPERATIONS.

The forward function has about OPERATIONS operations of one shape:
  products      products of one input and one weight, added by sum_n
  losses        scaled values and their losses, added
  parameters    products, each by a parameter of its own
  sum           scaled sigmoids of one value, added one by one
  convolutions  convolutions and relus
  chain         tanh, relu and sigmoid in turn
docs/testing.md, "Compile time", has the command that measures.
"""
import sys

ROWS = "tensor<4x8xf32>"
WEIGHT = "tensor<8x8xf32>"
KERNEL = "tensor<4x4x1x1xf32>"
IMAGE = "tensor<1x4x4x4xf32>"
PIXELS = "tensor<64xf32>"
STACK = "tensor<2x4x8xf32>"
SCALAR = "tensor<f32>"


class Graph:
    """The forward function while it grows."""

    def __init__(self):
        self.body = []
        self.parameters = []

    def value(self, text):
        name = f"%v{len(self.body)}"
        self.body.append(f"    {name} = mpc.{text}")
        return name

    def parameter(self, kind):
        self.parameters.append(kind)
        return f"%p{len(self.parameters) - 1}"

    def unary(self, operation, x):
        return self.value(f'{operation} {x} in "net" : {ROWS}')

    def scaled(self, x, factor):
        return self.value(f'mul_scalar {x} {{value = {factor}.5}} in "net" : {ROWS}')

    def product(self, x, weight):
        return self.value(f'matmul {x}, {weight} in "net" : ({ROWS}, {WEIGHT}) -> {ROWS}')

    def sum(self, a, b):
        return self.value(f'add {a}, {b} in "net" : ({ROWS}, {ROWS}) -> {ROWS}')

    def loss(self, x):
        return self.value(f'mse {x}, %t in <"loss"> : ({ROWS}, {ROWS}) -> {SCALAR}')


def products(graph, count):
    weight = graph.parameter(WEIGHT)
    terms = [graph.product("%x", weight) for _ in range(count)]
    return graph.loss(graph.value(f'sum_n {", ".join(terms)} in "net" : {ROWS}'))


def losses(graph, count):
    x = graph.product("%x", graph.parameter(WEIGHT))
    total = graph.loss(graph.scaled(x, 0))
    for i in range(1, count // 3):
        term = graph.loss(graph.scaled(x, i))
        total = graph.value(f'add {total}, {term} in <"loss"> : ({SCALAR}, {SCALAR}) -> {SCALAR}')
    return total


def parameters(graph, count):
    x = "%x"
    for _ in range(count):
        x = graph.product(x, graph.parameter(WEIGHT))
    return graph.loss(x)


def long_sum(graph, count):
    x = total = graph.product("%x", graph.parameter(WEIGHT))
    for i in range(count // 3):
        total = graph.sum(total, graph.unary("sigmoid", graph.scaled(x, i)))
    return graph.loss(total)


def convolutions(graph, count):
    y = graph.value(f'reshape %img {{shape = [1, 4, 4, 4]}} in "net" : ({PIXELS}) -> {IMAGE}')
    for _ in range(count // 2):
        y = graph.value(f'conv2d {y}, {graph.parameter(KERNEL)} in "net" : ({IMAGE}, {KERNEL}) -> {IMAGE}')
        y = graph.value(f'relu {y} in "net" : {IMAGE}')
    stack = graph.value(f'reshape {y} {{shape = [2, 4, 8]}} in "net" : ({IMAGE}) -> {STACK}')
    return graph.loss(graph.value(f'reduce_sum {stack} {{axes = [0]}} in "net" : ({STACK}) -> {ROWS}'))


def chain(graph, count):
    x = graph.product("%x", graph.parameter(WEIGHT))
    for i in range(count):
        x = graph.unary(("tanh", "relu", "sigmoid")[i % 3], x)
    return graph.loss(x)


SHAPES = {"products": products, "losses": losses, "parameters": parameters, "sum": long_sum,
          "convolutions": convolutions, "chain": chain}


def described(name, kind, role, text):
    return f'{name}: {kind} {{mpc.state = #mpc.state<{role}, {text}>}}'


def step_text(graph, loss):
    kinds = graph.parameters
    inputs = [("%x", ROWS), ("%t", ROWS), ("%img", PIXELS)]
    arguments = [described(name, kind, "input", f'"input{i}"') for i, (name, kind) in enumerate(inputs)]
    arguments += [described(f"%p{i}", kind, "parameter", f'"w{i}"') for i, kind in enumerate(kinds)]
    arguments.append(described("%lr", SCALAR, "learning_rate", '"lr"'))
    arguments += [described(f"%m{i}", kind, "slot", f'"w{i}.v", of = "w{i}"') for i, kind in enumerate(kinds)]
    results = [f'{SCALAR} {{mpc.state = #mpc.state<output, "loss">}}']
    results += [f'{kind} {{mpc.state = #mpc.state<parameter, "w{i}">}}' for i, kind in enumerate(kinds)]
    results += [f'{kind} {{mpc.state = #mpc.state<slot, "w{i}.v">}}' for i, kind in enumerate(kinds)]
    passed = inputs + [(f"%p{i}", kind) for i, kind in enumerate(kinds)]
    names = ", ".join(name for name, _ in passed)
    types = ", ".join(kind for _, kind in passed)
    places = ", ".join(str(len(inputs) + i) for i in range(len(kinds)))
    lines = ['module attributes {mpc.target = #mpc.target<"cpu">} {',
             f'  func.func @train_step({", ".join(arguments)}) -> ({", ".join(results)}) attributes {{mpc.step}} {{',
             f'    %one = mpc.constant {{value = dense<1.0> : {SCALAR}}} in <""> : () -> {SCALAR}',
             f'    %g:{len(kinds) + 1} = mpc.value_and_grad @forward({names}) seed(%one) {{wrt = array<i64: {places}>}}'
             f' : ({types}, {SCALAR}) -> ({", ".join([SCALAR] + kinds)})']
    for i, kind in enumerate(kinds):
        lines.append(f'    %n{i}, %u{i} = mpc.momentum %p{i}, %m{i}, %g#{i + 1}, %lr in <"optimizer">'
                     f' : ({kind}, {kind}, {kind}, {SCALAR})')
    returned = ["%g#0"] + [f"%n{i}" for i in range(len(kinds))] + [f"%u{i}" for i in range(len(kinds))]
    lines.append(f'    return {", ".join(returned)} : {", ".join([SCALAR] + kinds + kinds)}')
    lines.append("  }")
    captures = [described(name, kind, "capture", f'"c{i}"') for i, (name, kind) in enumerate(passed)]
    lines.append(f'  func.func private @forward({", ".join(captures)}) -> {SCALAR} {{')
    lines += graph.body
    lines += [f"    return {loss} : {SCALAR}", "  }", "}"]
    return "\n".join(lines)


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in SHAPES or not arguments[1].isdigit() or int(arguments[1]) < 3:
        sys.exit(f"usage: large_graph.py SHAPE OPERATIONS, of at least 3; SHAPE is one of {', '.join(SHAPES)}; "
                 f"got {' '.join(arguments) or 'nothing'}")
    graph = Graph()
    loss = SHAPES[arguments[0]](graph, int(arguments[1]))
    print(step_text(graph, loss))


if __name__ == "__main__":
    main(sys.argv[1:])
