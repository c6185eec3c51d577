// Status and Result: how every error a user can cause travels. Our own mistakes are CHECKs (check.h).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace samebits {

// Success, or one sentence for the user that names the file, tensor, shape or flag at fault and what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status Error(std::string sentence) {
    Status s;
    s.text_ = std::move(sentence);
    return s;
  }
  bool ok() const { return !text_.has_value(); }
  // Empty when ok.
  const std::string& text() const {
    static const std::string kEmpty;
    return text_ ? *text_ : kEmpty;
  }
  // The same error with the place put in front: "place: sentence".
  Status At(const std::string& place) const { return ok() ? *this : Error(place + ": " + *text_); }

 private:
  std::optional<std::string> text_;
};

inline Status Ok() { return Status(); }
inline Status Error(std::string sentence) { return Status::Error(std::move(sentence)); }

// A value or an error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status error) : status_(std::move(error)) { SB_CHECK(!status_.ok(), "Result built from an ok Status"); }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return Value(); }
  const T& operator*() const& { return const_cast<Result*>(this)->Value(); }
  T&& operator*() && { return std::move(Value()); }
  T* operator->() { return &Value(); }
  const T* operator->() const { return &const_cast<Result*>(this)->Value(); }

 private:
  T& Value() {
    SB_CHECK(value_.has_value(), status_.text());
    return *value_;
  }
  std::optional<T> value_;
  Status status_;
};

#define SB_CONCAT_(a, b) a##b
#define SB_CONCAT(a, b) SB_CONCAT_(a, b)
// Returns the error of a Status expression.
#define SB_RETURN_IF_ERROR(expr)             \
  do {                                       \
    ::samebits::Status sb_status_ = (expr);  \
    if (!sb_status_.ok()) return sb_status_; \
  } while (false)
// SB_ASSIGN(auto x, F()): x = *F(), or returns F's error.
#define SB_ASSIGN(lhs, expr) SB_ASSIGN_(SB_CONCAT(sb_result_, __LINE__), lhs, expr)
#define SB_ASSIGN_(tmp, lhs, expr)    \
  auto tmp = (expr);                  \
  if (!tmp.ok()) return tmp.status(); \
  lhs = std::move(*tmp)

}  // namespace samebits
