# cases.py: the cases that the options of bench/scripts/bench ask for.
#
# SPDX-License-Identifier: BSD-3-Clause

from benchlib import options
from benchlib.server import Failed


class Usage(Failed):
    """The command line is wrong."""


def in_group(engine, name):
    """Only the published systems have a code of their own."""
    if name in ('cpu', 'gpu'):
        return engine['gpu'] == (name == 'gpu')
    if name == 'seeds':
        return bool(engine['code'])
    return name == 'all' or (name == 'ours' and not engine['code'] and
                             engine['name'] != 'jerasure')


def with_options(server, engine, opts):
    """One engine with those words of --option that it knows; if it knows none
    of them, with its default."""
    words = engine['options'].split() if opts.option == 'all' \
        else opts.option.split(',') if opts.option else []
    found = [f'{engine["name"]}:{word}' for word in words if 'failed' not in
             server.ask('engine', engine=f'{engine["name"]}:{word}')]
    if opts.crc and not found:
        if 'crc' not in engine['options'].split():
            raise Usage(f'--crc: {engine["name"]} makes no CRCs')
        return [engine['name'] + ':crc']
    return found or [engine['name']]


def engines(server, machine, opts):
    """Names, all of which gpuraid-bench knows."""
    found = []
    for name in (opts.engine or machine.about['default']).split(','):
        group = [e for e in machine.engines.values() if in_group(e, name)]
        if not group and name in machine.engines:
            group = [machine.engines[name]]
        if group:
            for engine in group:
                found += with_options(server, engine, opts)
            continue
        answer = server.ask('engine', engine=name)
        if 'failed' in answer:
            raise Usage(f'--engine: {answer["failed"]}')
        found.append(name)
    return found


def of_engine(opts, about, case):
    """The cases of an engine: threads make no difference to most on a GPU, and
    codes over bytes have only one w."""
    crs = (about['code'] or opts.code) == 'crs'
    for w in opts.w if crs else [{}]:
        for cell in opts.cell:
            for rects in opts.batch:
                for threads in (opts.threads if about['uses_threads']
                                else opts.threads[:1]):
                    for slices in opts.slices:
                        for lose in opts.losses:
                            yield dict(case, cell=cell, rects=rects,
                                       threads=threads, slices=slices,
                                       **w, **lose)


def cases(opts, machine, names):
    """A request for "open" for every case."""
    for k, m in options.shapes(opts):
        for name in names:
            about = machine.engines[name.split(':')[0]]
            yield from of_engine(opts, about, {
                'engine': name, 'code': opts.code, 'k': k, 'm': m,
                'memory': opts.memory, 'least_rects': opts.least_rects,
                'seed': opts.seed})


def alike(machine, a, b):
    """Do they differ only in the engine?"""
    both = all(machine.engines[c['engine'].split(':')[0]]['uses_threads']
               for c in (a, b))
    ignored = {'engine'} if both else {'engine', 'threads'}
    # Of codes over bytes that of -w is not known.
    return all(a.get(key) == b.get(key) for key in a.keys() | b.keys()
               if key not in ignored)


def groups(opts, machine, names):
    """Lists of cases that are measured in turn."""
    rest = list(cases(opts, machine, names))
    while rest:
        group = [c for c in rest if alike(machine, rest[0], c)] \
            if opts.in_turn else rest[:1]
        # The same case may be there twice, to see what a difference means.
        chosen = {id(c) for c in group}
        rest = [c for c in rest if id(c) not in chosen]
        yield group
