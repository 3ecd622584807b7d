// The machine that pickle's opcodes are for: a stack of values, marks on it, and a memo. Opcodes
// are those of Python's pickletools.
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/traces/pytorch_memory/plain_data.h"

namespace rehearse {
namespace {

constexpr uint32_t kHighestProtocol = 5;

class Unpickler {
 public:
  using Id = PlainData::Id;
  using Kind = PlainData::Kind;

  Unpickler(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  PlainData Read() {
    while (true) {
      const auto opcode = static_cast<uint8_t>(Take(1)[0]);
      if (opcode == '.') break;
      if (!Constant(opcode) && !Text(opcode) && !Group(opcode) && !Memo(opcode)) Refuse(opcode);
    }
    data_.SetRoot(Pop());
    return std::move(data_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(Place{name_, 0, ""}, fmt::format("byte {} of the pickle: {}", at_, what));
  }

  [[noreturn]] void Refuse(uint8_t opcode) const {
    constexpr std::string_view kCalls = "cRbioPQ\x81\x82\x83\x84\x92\x93";
    if (kCalls.find(static_cast<char>(opcode)) != std::string_view::npos)
      Fail("an object of a Python class; expected numbers, texts, lists and dictionaries alone");
    Fail(fmt::format("the unknown opcode 0x{:02x}", opcode));
  }

  std::string_view Take(size_t count) {
    if (bytes_.size() - at_ < count) Fail("it is cut off");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  uint64_t TakeUnsigned(size_t count) {  // little-endian
    uint64_t value = 0;
    const std::string_view taken = Take(count);
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }

  std::string_view TakeLine() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) Fail("it is cut off");
    const std::string_view line = Take(end - at_);
    ++at_;
    return line;
  }

  // Little-endian, of any length, with a sign.
  double TakeLong(uint64_t count) {
    const std::string_view taken = Take(count);
    double value = 0;
    double digit = 1;
    for (const char byte : taken) {
      value += digit * static_cast<uint8_t>(byte);
      digit *= 256;
    }
    const bool is_negative = !taken.empty() && static_cast<int8_t>(taken.back()) < 0;
    return is_negative ? value - digit : value;
  }

  double ParsedLine() {
    std::string_view line = TakeLine();
    if (line.ends_with('L')) line.remove_suffix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || end != line.data() + line.size()) Fail("a number that is none");
    return value;
  }

  void Push(Id value) {
    CheckDepth(stack_.size());
    stack_.push_back(value);
  }
  void CheckDepth(size_t size) const {
    constexpr size_t kMost = size_t{1} << 25;
    if (size >= kMost) Fail("too many values at once");
  }
  Id Top() const {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size()))
      Fail("a value is missing");
    return stack_.back();
  }
  Id Pop() {
    const Id top = Top();
    stack_.pop_back();
    return top;
  }
  size_t PopMark() {
    if (marks_.empty()) Fail("a mark is missing");
    const size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }

  bool Constant(uint8_t opcode) {
    switch (opcode) {
      case 0x80: {
        const uint64_t protocol = TakeUnsigned(1);
        if (protocol > kHighestProtocol)
          Fail(fmt::format("protocol {}; expected at most {}", protocol, kHighestProtocol));
        return true;
      }
      case 0x95:
        Take(8);
        return true;  // a frame's length
      case 'N':
        Push(data_.AddNone());
        return true;
      case 0x88:
        Push(data_.AddBool(true));
        return true;
      case 0x89:
        Push(data_.AddBool(false));
        return true;
      case 'I':
      case 'L':
        Push(data_.AddInteger(ParsedLine()));
        return true;
      case 'J':
        Push(data_.AddInteger(static_cast<int32_t>(static_cast<uint32_t>(TakeUnsigned(4)))));
        return true;
      case 'K':
        Push(data_.AddInteger(static_cast<double>(TakeUnsigned(1))));
        return true;
      case 'M':
        Push(data_.AddInteger(static_cast<double>(TakeUnsigned(2))));
        return true;
      case 0x8a:
        Push(data_.AddInteger(TakeLong(TakeUnsigned(1))));
        return true;
      case 0x8b:
        Push(data_.AddInteger(TakeLong(TakeUnsigned(4))));
        return true;
      case 'F':
        Push(data_.AddFloat(ParsedLine()));
        return true;
      case 'G': {
        const std::string_view taken = Take(8);
        uint64_t bits = 0;
        for (const char byte : taken) bits = bits << 8 | static_cast<uint8_t>(byte);
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);
        Push(data_.AddFloat(value));
        return true;
      }
      default:
        return false;
    }
  }

  // Python 2 wrote its own notation of a text, in quotes.
  static std::string_view Unquoted(std::string_view line) {
    const bool is_quoted = line.size() >= 2 && line.front() == line.back() &&
                           (line.front() == '\'' || line.front() == '"');
    return is_quoted ? line.substr(1, line.size() - 2) : line;
  }

  bool Text(uint8_t opcode) {
    size_t width = 0;  // bytes of the length
    switch (opcode) {
      case 'S':
        Push(data_.AddText(Unquoted(TakeLine())));
        return true;
      case 'V':
        Push(data_.AddText(TakeLine()));
        return true;
      case 'U':
      case 'C':
      case 0x8c:
        width = 1;
        break;
      case 'X':
      case 'T':
      case 'B':
        width = 4;
        break;
      case 0x8d:
      case 0x8e:
      case 0x96:
        width = 8;
        break;
      default:
        return false;
    }
    Push(data_.AddText(Take(TakeUnsigned(width))));
    return true;
  }

  // The values above the mark become those of a new list, or of the one below it.
  void PutAbove(size_t mark, Id list, bool is_dict) {
    if ((data_.kind(list) == Kind::kDict) != is_dict ||
        (!is_dict && data_.kind(list) != Kind::kList))
      Fail("values for what is no list, or a dictionary's for what is none");
    if (is_dict && (stack_.size() - mark) % 2 != 0) Fail("a key without a value");
    for (size_t i = mark; i < stack_.size(); ++i) data_.Append(list, stack_[i]);
    stack_.resize(mark);
  }
  void MakeOf(size_t count, Kind kind) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) Fail("a value is missing");
    const Id list = data_.AddItems(kind);
    PutAbove(stack_.size() - count, list, kind == Kind::kDict);
    Push(list);
  }
  void MakeAboveMark(Kind kind) {
    const size_t mark = PopMark();
    const Id list = data_.AddItems(kind);
    PutAbove(mark, list, kind == Kind::kDict);
    Push(list);
  }
  void AddTo(size_t count, bool is_dict) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count + 1) Fail("a value is missing");
    const size_t mark = stack_.size() - count;
    PutAbove(mark, stack_[mark - 1], is_dict);
  }

  bool Group(uint8_t opcode) {
    switch (opcode) {
      case '(':
        CheckDepth(marks_.size());
        marks_.push_back(stack_.size());
        return true;
      case '0':
        Pop();
        return true;
      case '1':
        stack_.resize(PopMark());
        return true;
      case '2':
        Push(Top());
        return true;
      case ']':
      case ')':
      case 0x8f:
        Push(data_.AddItems(Kind::kList));
        return true;
      case '}':
        Push(data_.AddItems(Kind::kDict));
        return true;
      case 'l':
      case 't':
      case 0x91:
        MakeAboveMark(Kind::kList);
        return true;
      case 'd':
        MakeAboveMark(Kind::kDict);
        return true;
      case 0x85:
        MakeOf(1, Kind::kList);
        return true;
      case 0x86:
        MakeOf(2, Kind::kList);
        return true;
      case 0x87:
        MakeOf(3, Kind::kList);
        return true;
      case 'a':
        AddTo(1, false);
        return true;
      case 's':
        AddTo(2, true);
        return true;
      case 'e':
      case 0x90: {
        const size_t mark = PopMark();
        AddTo(stack_.size() - mark, false);
        return true;
      }
      case 'u': {
        const size_t mark = PopMark();
        AddTo(stack_.size() - mark, true);
        return true;
      }
      default:
        return false;
    }
  }

  void Put(uint64_t index) {
    constexpr uint64_t kMostMemo = uint64_t{1} << 27;
    if (index >= kMostMemo || index > 2 * memo_.size() + 1024)
      Fail("a place in the memo too far off");
    if (index >= memo_.size()) memo_.resize(index + 1, kUnset);
    memo_[index] = Top();
  }
  void Get(uint64_t index) {
    if (index >= memo_.size() || memo_[index] == kUnset)
      Fail("a value that the memo does not have");
    Push(memo_[index]);
  }
  uint64_t LineIndex() {
    const double value = ParsedLine();
    if (!(value >= 0 && value < 4e9)) Fail("a place in the memo that is none");
    return static_cast<uint64_t>(value);
  }

  bool Memo(uint8_t opcode) {
    switch (opcode) {
      case 'p':
        Put(LineIndex());
        return true;
      case 'q':
        Put(TakeUnsigned(1));
        return true;
      case 'r':
        Put(TakeUnsigned(4));
        return true;
      case 0x94:
        Put(memo_.size());
        return true;
      case 'g':
        Get(LineIndex());
        return true;
      case 'h':
        Get(TakeUnsigned(1));
        return true;
      case 'j':
        Get(TakeUnsigned(4));
        return true;
      default:
        return false;
    }
  }

  static constexpr Id kUnset = 0xffffffffu;
  const std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0;
  PlainData data_;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;
  std::vector<Id> memo_;
};

}  // namespace

PlainData ReadPickle(std::string_view bytes, const std::string& name) {
  return Unpickler(bytes, name).Read();
}

}  // namespace rehearse
