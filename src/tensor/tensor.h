// Tensors: erased at rest (TensorRef, Tensor), typed in use (View<T>). Row-major; strides in elements.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tensor/dtype.h"

namespace samebits {

using Shape = std::vector<int64_t>;

// Number of elements; 1 for a scalar (empty shape). The caller has checked that the product fits.
int64_t ElementCount(const Shape& shape);
// "[2, 3]"
std::string ShapeText(const Shape& shape);

// A typed matrix: rows of `cols` elements, `stride` elements apart. What ops take: every op works on rows.
template <class T>
struct View {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  View() = default;
  View(T* d, int64_t r, int64_t c) : data(d), rows(r), cols(c), stride(c) {}
  View(T* d, int64_t r, int64_t c, int64_t s) : data(d), rows(r), cols(c), stride(s) {}
  // Read-only from read-write.
  template <class U>
    requires(!std::is_const_v<U> && std::is_same_v<const U, T>)
  View(const View<U>& v) : data(v.data), rows(v.rows), cols(v.cols), stride(v.stride) {}

  T* Row(int64_t r) const { return data + r * stride; }
  bool empty() const { return rows == 0 || cols == 0; }
  View Rows(int64_t begin, int64_t count) const { return View(Row(begin), count, cols, stride); }
};

// A matrix of either activation type, erased: what an op's Args hold where more than one dtype is allowed.
struct ConstMat {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0, cols = 0, stride = 0;

  ConstMat() = default;
  template <class T>
  ConstMat(const View<T>& v)
      : data(v.data), dtype(DTypeOf<std::remove_const_t<T>>::value), rows(v.rows), cols(v.cols), stride(v.stride) {}
  explicit operator bool() const { return data != nullptr; }
  template <class T>
  View<const T> As() const {
    SB_CHECK(DTypeOf<T>::value == dtype, std::string("matrix is ") + DTypeName(dtype));
    return View<const T>(static_cast<const T*>(data), rows, cols, stride);
  }
  // Columns [begin, begin + count).
  ConstMat Cols(int64_t begin, int64_t count) const {
    ConstMat m = *this;
    m.data = static_cast<const uint8_t*>(data) + begin * DTypeBits(dtype) / 8;
    m.cols = count;
    return m;
  }
  ConstMat Rows(int64_t begin, int64_t count) const {
    ConstMat m = *this;
    m.data = static_cast<const uint8_t*>(data) + begin * stride * DTypeBits(dtype) / 8;
    m.rows = count;
    return m;
  }
};
struct Mat {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0, cols = 0, stride = 0;

  Mat() = default;
  template <class T>
  Mat(const View<T>& v) : data(v.data), dtype(DTypeOf<T>::value), rows(v.rows), cols(v.cols), stride(v.stride) {}
  explicit operator bool() const { return data != nullptr; }
  operator ConstMat() const {
    ConstMat m;
    m.data = data, m.dtype = dtype, m.rows = rows, m.cols = cols, m.stride = stride;
    return m;
  }
  template <class T>
  View<T> As() const {
    SB_CHECK(DTypeOf<T>::value == dtype, std::string("matrix is ") + DTypeName(dtype));
    return View<T>(static_cast<T*>(data), rows, cols, stride);
  }
  Mat Cols(int64_t begin, int64_t count) const {
    Mat m = *this;
    m.data = static_cast<uint8_t*>(data) + begin * DTypeBits(dtype) / 8;
    m.cols = count;
    return m;
  }
  Mat Rows(int64_t begin, int64_t count) const {
    Mat m = *this;
    m.data = static_cast<uint8_t*>(data) + begin * stride * DTypeBits(dtype) / 8;
    m.rows = count;
    return m;
  }
};
// Element (r, c) widened exactly to fp32; BF16 or F32 only. For references, not for loops that must be fast.
inline float MatAt(const ConstMat& m, int64_t r, int64_t c) {
  const int64_t i = r * m.stride + c;
  if (m.dtype == DType::kBF16) return ToF32(static_cast<const BF16*>(m.data)[i]);
  SB_CHECK(m.dtype == DType::kF32, DTypeName(m.dtype));
  return static_cast<const float*>(m.data)[i];
}
// Stores x with the one rounding of m's dtype; BF16 or F32 only.
inline void MatPut(const Mat& m, int64_t r, int64_t c, float x) {
  const int64_t i = r * m.stride + c;
  if (m.dtype == DType::kBF16) {
    static_cast<BF16*>(m.data)[i] = RoundToBF16(x);
  } else {
    SB_CHECK(m.dtype == DType::kF32, DTypeName(m.dtype));
    static_cast<float*>(m.data)[i] = x;
  }
}

// A tensor somebody else owns: contiguous bytes, dtype and shape.
struct TensorRef {
  DType dtype = DType::kU8;
  Shape shape;
  const void* data = nullptr;

  int64_t elements() const { return ElementCount(shape); }
  uint64_t bytes() const {
    return (static_cast<uint64_t>(elements()) * static_cast<uint64_t>(DTypeBits(dtype)) + 7) / 8;
  }
  template <class T>
  const T* As() const {
    SB_CHECK(DTypeOf<T>::value == dtype, std::string("tensor is ") + DTypeName(dtype));
    return static_cast<const T*>(data);
  }
};

// An owning tensor, zero-initialised.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape);
  template <class T>
  static Tensor Of(Shape shape) {
    return Tensor(DTypeOf<T>::value, std::move(shape));
  }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return ElementCount(shape_); }
  uint64_t bytes() const { return bytes_.size(); }
  void* raw() { return bytes_.data(); }
  const void* raw() const { return bytes_.data(); }
  TensorRef ref() const { return TensorRef{dtype_, shape_, bytes_.data()}; }
  template <class T>
  T* As() {
    SB_CHECK(DTypeOf<T>::value == dtype_, std::string("tensor is ") + DTypeName(dtype_));
    return reinterpret_cast<T*>(bytes_.data());
  }
  template <class T>
  const T* As() const {
    return const_cast<Tensor*>(this)->As<T>();
  }
  // All leading dimensions flattened into rows; a scalar is 1 x 1.
  template <class T>
  View<T> Matrix() {
    const int64_t cols = shape_.empty() ? 1 : shape_.back();
    return View<T>(As<T>(), cols ? elements() / cols : 0, cols);
  }

 private:
  DType dtype_ = DType::kU8;
  Shape shape_;
  std::vector<uint8_t> bytes_;
};

// The one equality of this project: same dtype, shape and bytes (NaN payloads and -0 count).
bool SameBits(const TensorRef& a, const TensorRef& b);

// "" if same bits; else how many elements differ, the first coordinate, both values in hex and as numbers, ULPs apart.
std::string DescribeDifference(const TensorRef& a, const TensorRef& b);

// Element i widened to double exactly where possible (I64/U64 beyond 2^53 are rounded: compare those as integers).
double ElementAsDouble(const TensorRef& t, int64_t i);

}  // namespace samebits
