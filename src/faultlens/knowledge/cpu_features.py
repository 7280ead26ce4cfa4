"""What CPU features are called: by the disassembler, by /proc/cpuinfo, and by people."""

from __future__ import annotations

from collections.abc import Iterable

# CPUID features as the disassembler (iced-x86) names them, and their flag in /proc/cpuinfo.
# A feature that is not here is never said to be lacking.
FLAGS = {
    "SSE3": "pni", "SSSE3": "ssse3", "SSE4_1": "sse4_1", "SSE4_2": "sse4_2", "SSE4A": "sse4a",
    "POPCNT": "popcnt", "LZCNT": "abm", "BMI1": "bmi1", "BMI2": "bmi2", "ADX": "adx", "MOVBE": "movbe",
    "AES": "aes", "PCLMULQDQ": "pclmulqdq", "VAES": "vaes", "VPCLMULQDQ": "vpclmulqdq", "SHA": "sha_ni",
    "GFNI": "gfni", "RDRAND": "rdrand", "RDSEED": "rdseed", "F16C": "f16c", "FMA": "fma", "FMA4": "fma4",
    "XOP": "xop", "AVX": "avx", "AVX2": "avx2", "AVX_VNNI": "avx_vnni", "AVX_IFMA": "avx_ifma",
    "AVX512F": "avx512f", "AVX512CD": "avx512cd", "AVX512DQ": "avx512dq", "AVX512BW": "avx512bw",
    "AVX512VL": "avx512vl", "AVX512_IFMA": "avx512ifma", "AVX512_VBMI": "avx512vbmi",
    "AVX512_VBMI2": "avx512_vbmi2", "AVX512_VNNI": "avx512_vnni", "AVX512_BITALG": "avx512_bitalg",
    "AVX512_VPOPCNTDQ": "avx512_vpopcntdq", "AVX512_BF16": "avx512_bf16", "AVX512_FP16": "avx512_fp16",
    "AVX512_VP2INTERSECT": "avx512_vp2intersect", "AMX_TILE": "amx_tile", "AMX_INT8": "amx_int8",
    "AMX_BF16": "amx_bf16", "AMX_FP16": "amx_fp16",
}  # fmt: skip
_NAMES = {flag: feature for feature, flag in FLAGS.items()}


def lacking(features: Iterable[str], flags: Iterable[str]) -> tuple[str, ...]:
    """Those of the features that a CPU with these flags does not have."""
    present = set(flags)
    return tuple(feature for feature in features if feature in FLAGS and FLAGS[feature] not in present)


def spoken(flag: str) -> str:
    """ "avx512f" -> "AVX512F", "pni" -> "SSE3"."""
    return _NAMES.get(flag, flag.upper())
