#include "tools/foreign/runs/megatron/shell_arithmetic.h"

#include <charconv>

namespace rehearse {
namespace {

constexpr int kDeepestParentheses = 64;

class Arithmetic {
 public:
  Arithmetic(std::string_view text,
             const std::function<std::optional<int64_t>(std::string_view)>& value_of)
      : text_(text), value_of_(value_of) {}

  std::optional<int64_t> Whole() {
    const std::optional<int64_t> sum = Sum();
    SkipBlanks();
    return at_ == text_.size() ? sum : std::nullopt;
  }

 private:
  static bool IsPartOfName(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  void SkipBlanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\\'))
      ++at_;
  }
  char Next() {
    SkipBlanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  static std::optional<int64_t> Joined(int64_t a, char op, int64_t b) {
    int64_t result = 0;
    bool is_too_much = false;
    switch (op) {
      case '+':
        is_too_much = __builtin_add_overflow(a, b, &result);
        break;
      case '-':
        is_too_much = __builtin_sub_overflow(a, b, &result);
        break;
      case '*':
        is_too_much = __builtin_mul_overflow(a, b, &result);
        break;
      default:
        if (b == 0 || b == -1) return std::nullopt;
        result = op == '/' ? a / b : a % b;
    }
    return is_too_much ? std::nullopt : std::optional<int64_t>(result);
  }

  std::optional<int64_t> Sum() {
    std::optional<int64_t> sum = Product();
    while (sum && (Next() == '+' || Next() == '-')) {
      const char op = text_[at_++];
      const std::optional<int64_t> term = Product();
      sum = term ? Joined(*sum, op, *term) : std::nullopt;
    }
    return sum;
  }

  std::optional<int64_t> Product() {
    std::optional<int64_t> product = Factor();
    while (product && (Next() == '*' || Next() == '/' || Next() == '%')) {
      const char op = text_[at_++];
      const std::optional<int64_t> factor = Factor();
      product = factor ? Joined(*product, op, *factor) : std::nullopt;
    }
    return product;
  }

  std::optional<int64_t> Factor() {
    const char c = Next();
    if (c == '(') {
      if (++depth_ > kDeepestParentheses) return std::nullopt;
      ++at_;
      const std::optional<int64_t> sum = Sum();
      if (Next() != ')') return std::nullopt;
      ++at_;
      --depth_;
      return sum;
    }
    if (c >= '0' && c <= '9') {
      int64_t number = 0;
      const char* const end = text_.data() + text_.size();
      const auto [behind, error] = std::from_chars(text_.data() + at_, end, number);
      at_ = static_cast<size_t>(behind - text_.data());
      return error == std::errc() ? std::optional<int64_t>(number) : std::nullopt;
    }
    if (c == '$') ++at_;
    const bool has_brace = c == '$' && Next() == '{';
    if (has_brace) ++at_;
    const size_t begin = at_;
    while (at_ < text_.size() && IsPartOfName(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty() || (has_brace && Next() != '}')) return std::nullopt;
    if (has_brace) ++at_;
    return value_of_(name);
  }

  std::string_view text_;
  const std::function<std::optional<int64_t>(std::string_view)>& value_of_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<int64_t> ShellArithmetic(
    std::string_view text,
    const std::function<std::optional<int64_t>(std::string_view variable)>& value_of) {
  return Arithmetic(text, value_of).Whole();
}

}  // namespace rehearse
