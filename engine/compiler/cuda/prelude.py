"""The device functions that generated CUDA C calls, in front of every kernel.

Their results are those of NumPy, NaN, infinities and wrapped integers included. `__CUDACC__` is
what a compiler for GPUs defines; without it the text is plain C++, which tests run on the host.
"""

from __future__ import annotations

PRELUDE = r"""
typedef signed char lm_int8; typedef short lm_int16; typedef int lm_int32;
typedef long long lm_int64;
typedef unsigned char lm_uint8; typedef unsigned short lm_uint16; typedef unsigned lm_uint32;
typedef unsigned long long lm_uint64;
struct lm_f16 { lm_uint16 bits; };
struct lm_b16 { lm_uint16 bits; };
template <class T, int N> struct alignas(sizeof(T) * N) lm_vector { T at[N]; };

template <class To, class From> __device__ __forceinline__ To lm_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "bits");
  union { From from; To to; } both; both.from = x; return both.to;
}
#define LM_INF_F lm_bits<float>(0x7f800000u)
#define LM_NAN_F lm_bits<float>(0x7fc00000u)
#define LM_INF lm_bits<double>(0x7ff0000000000000ull)
#define LM_NAN lm_bits<double>(0x7ff8000000000000ull)

// Halves: two bytes in memory, in registers a float that has been rounded.
__device__ __forceinline__ float lm_get(lm_b16 x) {
  return lm_bits<float>((lm_uint32)x.bits << 16);
}
__device__ __forceinline__ lm_b16 lm_b16_of(float x) {
  lm_uint32 u = lm_bits<lm_uint32>(x);
  lm_uint32 rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
  lm_b16 y; y.bits = (lm_uint16)(x != x ? (u >> 16 | 0x40) : rounded); return y;
}
__device__ __forceinline__ float lm_get(lm_f16 x) {
#ifdef __CUDACC__
  float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y;
#else
  lm_uint32 sign = (lm_uint32)(x.bits & 0x8000) << 16, size = x.bits & 0x7fff;
  if (size >= 0x7c00) return lm_bits<float>(sign | 0x7f800000u | (size & 0x3ff) << 13);
  if (size >= 0x400) return lm_bits<float>(sign | ((size << 13) + 0x38000000u));
  float y = (float)size * 5.9604644775390625e-8f;
  return lm_bits<float>(sign | lm_bits<lm_uint32>(y));
#endif
}
__device__ __forceinline__ lm_f16 lm_f16_of(float x) {
  lm_f16 y;
#ifdef __CUDACC__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  lm_uint32 u = lm_bits<lm_uint32>(x), sign = u >> 16 & 0x8000, size = u & 0x7fffffffu, found;
  if (size > 0x7f800000u) found = 0x7e00;
  else if (size >= 0x477ff000u) found = 0x7c00;
  else if (size >= 0x38800000u) found = (size + 0xfffu + (size >> 13 & 1) - 0x38000000u) >> 13;
  else found = lm_bits<lm_uint32>(lm_bits<float>(size) + 0.5f) - 0x3f000000u;
  y.bits = (lm_uint16)(sign | found);
#endif
  return y;
}
// A double as a float of which a half can be made without a second rounding: the last bit says
// whether anything was cut off.
__device__ __forceinline__ float lm_to_odd(double x) {
  float y = (float)x;
  if ((double)y == x || x != x || (y - y) != 0.0f) return y;
  lm_uint32 u = lm_bits<lm_uint32>(y);
  bool is_above = ((double)y > x) == (x > 0);
  return lm_bits<float>((u - is_above) | 1u);
}
template <class T> __device__ __forceinline__ T lm_get(T x) { return x; }
template <class T> __device__ __forceinline__ void lm_put(T& to, T x) { to = x; }
__device__ __forceinline__ void lm_put(lm_f16& to, float x) { to = lm_f16_of(x); }
__device__ __forceinline__ void lm_put(lm_b16& to, float x) { to = lm_b16_of(x); }
__device__ __forceinline__ float lm_round_f16(float x) { return lm_get(lm_f16_of(x)); }
__device__ __forceinline__ float lm_round_b16(float x) { return lm_get(lm_b16_of(x)); }

// Integers wrap around; those of fewer bits are computed in 32.
template <class T> struct lm_wrapping { typedef lm_uint32 type; };
template <> struct lm_wrapping<lm_int64> { typedef lm_uint64 type; };
template <> struct lm_wrapping<lm_uint64> { typedef lm_uint64 type; };
#define LM_W typename lm_wrapping<T>::type
template <class T> __device__ __forceinline__ T lm_add(T a, T b) { return (T)((LM_W)a + (LM_W)b); }
template <class T> __device__ __forceinline__ T lm_sub(T a, T b) { return (T)((LM_W)a - (LM_W)b); }
template <class T> __device__ __forceinline__ T lm_mul(T a, T b) { return (T)((LM_W)a * (LM_W)b); }
template <class T> __device__ __forceinline__ T lm_neg(T a) { return (T)((LM_W)0 - (LM_W)a); }
#define LM_FLOAT(T) \
  __device__ __forceinline__ T lm_add(T a, T b) { return a + b; } \
  __device__ __forceinline__ T lm_sub(T a, T b) { return a - b; } \
  __device__ __forceinline__ T lm_mul(T a, T b) { return a * b; } \
  __device__ __forceinline__ T lm_neg(T a) { return -a; }
LM_FLOAT(float) LM_FLOAT(double)

// The greater and the smaller of two: NaN if either is, the second of equal ones.
template <class T> __device__ __forceinline__ T lm_max(T a, T b) {
  return a != a ? a : a > b ? a : b;
}
template <class T> __device__ __forceinline__ T lm_min(T a, T b) {
  return a != a ? a : a < b ? a : b;
}
template <class T> __device__ __forceinline__ T lm_abs(T a) { return a < (T)0 ? lm_neg(a) : a; }
__device__ __forceinline__ float lm_abs(float a) { return fabsf(a); }
__device__ __forceinline__ double lm_abs(double a) { return fabs(a); }
template <class T> __device__ __forceinline__ T lm_sign(T a) {
  return a > (T)0 ? (T)1 : a < (T)0 ? (T)-1 : a == (T)0 ? (T)0 : a;
}
template <class T> __device__ __forceinline__ bool lm_is_nan(T a) { return a != a; }
__device__ __forceinline__ bool lm_is_inf(float a) { return fabsf(a) == LM_INF_F; }
__device__ __forceinline__ bool lm_is_inf(double a) { return fabs(a) == LM_INF; }
__device__ __forceinline__ bool lm_is_finite(float a) { return fabsf(a) < LM_INF_F; }
__device__ __forceinline__ bool lm_is_finite(double a) { return fabs(a) < LM_INF; }

// A float as an integer: the least one for NaN and what is out of range.
template <class F> __device__ __forceinline__ lm_int32 lm_int32_of(F x) {
  return x >= (F)-2147483648.0 && x < (F)2147483648.0 ? (lm_int32)x : (lm_int32)0x80000000u;
}
template <class F> __device__ __forceinline__ lm_int64 lm_int64_of(F x) {
  return x >= (F)-9223372036854775808.0 && x < (F)9223372036854775808.0
    ? (lm_int64)x : (lm_int64)0x8000000000000000ull;
}

// Shifts by as many bits as there are, or by negative numbers, move all of them out.
template <class T> __device__ __forceinline__ T lm_shift_left(T a, T b) {
  return b >= (T)0 && b < (T)(8 * sizeof(T)) ? (T)((LM_W)a << (LM_W)b) : (T)0;
}
template <class T> __device__ __forceinline__ T lm_shift_right(T a, T b) {
  bool within = b >= (T)0 && b < (T)(8 * sizeof(T));
  if ((T)-1 > (T)0) return within ? (T)(a >> b) : (T)0;
  return (T)(a >> (within ? b : (T)(8 * sizeof(T) - 1)));
}

// Quotients and remainders of integers: 0 where the divisor is 0.
template <class T> __device__ __forceinline__ T lm_quotient(T a, T b) {
  if (b == (T)0) return (T)0;
  if ((T)-1 < (T)0 && b == (T)-1) return lm_neg(a);
  return (T)(a / b);
}
template <class T> __device__ __forceinline__ T lm_trunc_mod(T a, T b) {
  return b == (T)0 ? (T)0 : lm_sub(a, lm_mul(lm_quotient(a, b), b));
}
template <class T> __device__ __forceinline__ T lm_floor_mod(T a, T b) {
  T r = lm_trunc_mod(a, b);
  return r != (T)0 && (r < (T)0) != (b < (T)0) ? lm_add(r, b) : r;
}
template <class T> __device__ __forceinline__ T lm_floor_divide(T a, T b) {
  T q = lm_quotient(a, b), r = lm_trunc_mod(a, b);
  return r != (T)0 && (r < (T)0) != (b < (T)0) ? (T)(q - (T)1) : q;
}
#define LM_REMAINDERS(T, fmod_, copysign_, floor_) \
  __device__ __forceinline__ T lm_trunc_mod(T a, T b) { return fmod_(a, b); } \
  __device__ __forceinline__ T lm_floor_mod(T a, T b) { \
    T r = fmod_(a, b); \
    if (r == 0) return copysign_(r, b); \
    return (r < 0) != (b < 0) ? r + b : r; \
  } \
  __device__ __forceinline__ T lm_floor_divide(T a, T b) { \
    T quotient = a / b; \
    if (b == 0) return quotient; \
    T r = fmod_(a, b), q = (a - r) / b; \
    if (r != 0 && (r < 0) != (b < 0)) q -= 1; \
    T below = floor_(q), whole = q - below > (T)0.5 ? below + 1 : below; \
    return q == 0 ? copysign_((T)0, quotient) : whole; \
  }
LM_REMAINDERS(float, fmodf, copysignf, floorf)
LM_REMAINDERS(double, fmod, copysign, floor)

__device__ __forceinline__ float lm_sigmoid(float x) {
  float e = expf(-fabsf(x)); return (x >= 0 ? 1.0f : e) / (1.0f + e);
}
__device__ __forceinline__ double lm_sigmoid(double x) {
  double e = exp(-fabs(x)); return (x >= 0 ? 1.0 : e) / (1.0 + e);
}
// x * 2**n, rounded once.
__device__ __forceinline__ float lm_ldexp(float x, lm_int32 n) { return ldexpf(x, n); }

// Of two elements with their places, whether the second goes first: NaN, then the lower place.
template <class T>
__device__ __forceinline__ bool lm_beats(bool beats, T a, lm_int32 i, T b, lm_int32 j) {
  bool ties = b == a || (b != b && a != a);
  return beats || (b != b && a == a) || (ties && j < i);
}

// The value of the first thread of the warp.
template <class T> __device__ __forceinline__ T lm_first_lane(T x) {
  union { T value; lm_uint32 words[(sizeof(T) + 3) / 4]; } both;
  both.words[0] = 0; both.value = x;
#pragma unroll
  for (int i = 0; i < (int)((sizeof(T) + 3) / 4); i++)
    both.words[i] = __shfl_sync(0xffffffffu, both.words[i], 0);
  return both.value;
}

// A value of the thread whose number in its warp differs in some bits.
template <class T> __device__ __forceinline__ T lm_from_lane(T x, int other) {
  union { T value; lm_uint32 words[(sizeof(T) + 3) / 4]; } both;
  both.words[0] = 0; both.value = x;
#pragma unroll
  for (int i = 0; i < (int)((sizeof(T) + 3) / 4); i++)
    both.words[i] = __shfl_xor_sync(0xffffffffu, both.words[i], other);
  return both.value;
}
"""
