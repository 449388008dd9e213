"""Matrix products by oneDNN equal MKL's, forward and backward, in all shapes and layouts."""

import subprocess
import sys
import textwrap

import pytest
import torch

from kgprobe.probes.models import products

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this PyTorch was built without oneDNN"
)


def run(code: str) -> str:
    """Return the output of a separate Python process with the kernels installed and one thread."""
    before = """
        import torch
        from kgprobe.probes.models import products
        torch.set_num_threads(1)
        def put():
            products._is_narrow = lambda: True
            assert products.use_wide_vectors() and products.use_wide_vectors()
    """
    text = textwrap.dedent(before) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_onednn
def test_products_and_gradients_are_those_of_float64():
    """Covers all layouts and shapes, with and without bias, single rows, no rows, other dtypes."""
    output = run("""
        from itertools import product
        def made(rows, columns, turned, generator):
            shape = (columns, rows) if turned else (rows, columns)
            found = torch.randn(shape, generator=generator)
            return found.t() if turned else found
        put()
        seen = 0
        for m, k, n in product((0, 1, 2, 7, 130), (1, 3, 64), (1, 5, 96)):
            for turned in product((False, True), repeat=2):
                generator = torch.Generator().manual_seed(m + 10 * k + n)
                left = made(m, k, turned[0], generator).requires_grad_()
                right = made(k, n, turned[1], generator).requires_grad_()
                bias = torch.randn(n, generator=generator).requires_grad_()
                whole = torch.randn(m, n, generator=generator)
                doubles = [t.detach().double().requires_grad_() for t in (left, right, bias)]
                for of in (lambda a, b, c: a @ b, lambda a, b, c: torch.addmm(c, a, b),
                           lambda a, b, c: torch.addmm(c, a, b, beta=.5, alpha=2),
                           lambda a, b, c: torch.addmm(whole.to(a), a, b),
                           lambda a, b, c: torch.nn.functional.linear(a, b.t(), c)):
                    found, expected = of(left, right, bias), of(*doubles)
                    assert found.dtype == torch.float32 and expected.dtype == torch.float64
                    close = torch.testing.assert_close
                    close(found.double(), expected, rtol=1e-5, atol=1e-4)
                    given = [(a, d) for a, d in zip((left, right, bias), doubles)]
                    found.square().sum().backward()
                    expected.square().sum().backward()
                    for a, d in given:
                        if d.grad is not None:
                            close(a.grad.double(), d.grad, rtol=1e-4, atol=1e-2)
                            seen += 1
                        a.grad = d.grad = None
        assert (torch.ones(2, 2).int() @ torch.ones(2, 2).int()).dtype == torch.int32
        conjugated = torch.ones(2, 2).cfloat().mul(1j).conj().imag  # a negative view
        assert conjugated.is_neg() and (conjugated @ torch.ones(2, 2)).eq(-2).all()
        try:
            torch.zeros(2, 3) @ torch.zeros(2, 3)
        except RuntimeError as error:
            assert "cannot be multiplied" in str(error)
        else:
            raise AssertionError("shapes that do not fit")
        print(seen)
    """)
    assert int(output) > 1000


@needs_onednn
def test_a_model_agrees_across_libraries_and_repeats_its_bytes():
    """Log-probabilities of a transformer agree in both libraries; a repeat gives the same bytes."""
    output = run("""
        from transformers import GPT2Config, GPT2LMHeadModel
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(vocab_size=500, n_embd=64, n_layer=2, n_head=4)).eval()
        ids = torch.randint(500, (4, 20))
        with torch.inference_mode():
            before = model(ids).logits.log_softmax(-1)
            put()
            after, again = (model(ids).logits.log_softmax(-1) for _ in range(2))
        print(float((before - after).abs().max()), torch.equal(after, again))
    """)
    apart, same = output.split()
    assert float(apart) < 1e-4
    assert same == "True"


def test_only_processors_that_mkl_slows_down_are_changed(monkeypatch, tmp_path):
    """An Intel processor, one without AVX-512 and a system without /proc/cpuinfo keep MKL."""
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(products, "CPUINFO", cpuinfo)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert not products._is_narrow()
    cpuinfo.write_text("vendor_id\t: GenuineIntel\n")
    assert not products._is_narrow()
    cpuinfo.write_text("vendor_id\t: AuthenticAMD\n")
    assert products._is_narrow()
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert not products._is_narrow()
