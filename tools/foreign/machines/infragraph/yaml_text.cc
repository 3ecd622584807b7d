#include "tools/foreign/machines/infragraph/yaml_text.h"

#ifdef REHEARSE_HAS_YAML
#include <algorithm>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>
#endif

#include "sim/base/error.h"

namespace rehearse {

#ifdef REHEARSE_HAS_YAML
namespace {

constexpr size_t kMostRepeated = size_t{8} << 20;  // bytes, by aliases

// Writes JSON as the parser goes, with as many line breaks as the file had.
class JsonOfYaml : public YAML::EventHandler {
 public:
  explicit JsonOfYaml(std::string name) : name_(std::move(name)) {}

  const std::string& text() const { return text_; }
  void set_done() { is_done_ = true; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (is_done_) Fail(mark, "found a second document, expected one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Scalar(mark, anchor, "null", "");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Scalar(mark, anchor, tag == "?" ? PlainOf(value) : TextOf(value), value);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto anchored = anchors_.find(anchor);
    if (anchored == anchors_.end()) Fail(mark, "found an alias of what it stands in");
    if (IsKey()) Fail(mark, "found an alias, expected a key");
    const auto [begin, end] = anchored->second;
    repeated_ += end - begin;
    if (repeated_ > kMostRepeated)
      Fail(mark, fmt::format("aliases repeat more than {} MiB", kMostRepeated >> 20));
    Begin(mark);
    std::string copy = text_.substr(begin, end - begin);
    copy.erase(std::remove(copy.begin(), copy.end(), '\n'), copy.end());
    text_ += copy;
    End();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    static_cast<void>(tag);
    static_cast<void>(style);
    Open(mark, anchor, false);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    static_cast<void>(tag);
    static_cast<void>(style);
    Open(mark, anchor, true);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    bool is_map = false;
    bool is_key_next = false;
    bool is_empty = true;
    YAML::anchor_t anchor = 0;
    size_t begin = 0;
  };

  [[noreturn]] void Fail(const YAML::Mark& mark, const std::string& message) const {
    throw Error({name_, mark.line + 1, ""}, message);
  }

  static std::string PlainOf(const std::string& value) {
    if (value == "~" || value.empty()) return "null";
    const bool is_number = value[0] == '-' || (value[0] >= '0' && value[0] <= '9');
    const bool is_word = value == "true" || value == "false" || value == "null";
    if (is_word || (is_number && nlohmann::json::accept(value))) return value;
    return TextOf(value);
  }
  // Bytes that are no UTF-8 become U+FFFD.
  static std::string TextOf(const std::string& value) {
    return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  bool IsKey() const { return !levels_.empty() && levels_.back().is_key_next; }

  void Begin(const YAML::Mark& mark) {
    if (!levels_.empty() && (!levels_.back().is_map || IsKey())) {
      if (!levels_.back().is_empty) text_ += ",";
      levels_.back().is_empty = false;
    }
    for (; line_ < mark.line; ++line_) text_ += "\n";
    if (text_.size() > kLargestJson) Fail(mark, "the file is too large");
  }
  void End() {
    if (!levels_.empty() && levels_.back().is_map) levels_.back().is_key_next = true;
  }

  void Scalar(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& json,
              const std::string& value) {
    if (IsKey()) {
      Begin(mark);
      text_ += TextOf(value) + ":";
      levels_.back().is_key_next = false;
      return;
    }
    Begin(mark);
    const size_t begin = text_.size();
    text_ += json;
    if (anchor != 0) anchors_[anchor] = {begin, text_.size()};
    End();
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, bool is_map) {
    if (IsKey()) Fail(mark, "found a list or an object, expected a key");
    if (levels_.size() >= kDeepestJson)
      Fail(mark, fmt::format("found more than {} levels of nesting", kDeepestJson));
    Begin(mark);
    levels_.push_back({is_map, is_map, true, anchor, text_.size()});
    text_ += is_map ? "{" : "[";
  }
  void Close() {
    const Level level = levels_.back();
    levels_.pop_back();
    text_ += level.is_map ? "}" : "]";
    if (level.anchor != 0) anchors_[level.anchor] = {level.begin, text_.size()};
    End();
  }

  std::string name_;
  std::string text_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, std::pair<size_t, size_t>> anchors_;  // of what is complete
  size_t repeated_ = 0;
  int line_ = 0;
  bool is_done_ = false;
};

}  // namespace

bool HasYaml() { return true; }

JsonDocument ReadYaml(std::string_view text, const std::string& name) {
  JsonOfYaml json(name);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(json))
      throw Error({name, 0, ""}, "found no document, expected one");
    json.set_done();
    parser.HandleNextDocument(json);
  } catch (const YAML::Exception& error) {
    throw Error({name, error.mark.is_null() ? 0 : error.mark.line + 1, ""},
                "no YAML: " + error.msg);
  }
  return JsonDocument::FromText(json.text(), name);
}

#else

bool HasYaml() { return false; }

JsonDocument ReadYaml(std::string_view text, const std::string& name) {
  static_cast<void>(text);
  throw Error({name, 0, ""},
              "this build reads no YAML: it was made without yaml-cpp (libyaml-cpp-dev); JSON it "
              "reads");
}

#endif

}  // namespace rehearse
