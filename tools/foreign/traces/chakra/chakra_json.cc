#include "tools/foreign/traces/chakra/chakra_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/traces/chakra/chakra_format.h"

namespace rehearse {
namespace {

using ChakraValue = nlohmann::json;

constexpr std::pair<const char*, uint32_t> kNodeTypeNames[] = {
    {"INVALID_NODE", chakra::kInvalid},     {"METADATA_NODE", chakra::kMetadata},
    {"MEM_LOAD_NODE", chakra::kMemoryLoad}, {"MEM_STORE_NODE", chakra::kMemoryStore},
    {"COMP_NODE", chakra::kCompute},        {"COMM_SEND_NODE", chakra::kSend},
    {"COMM_RECV_NODE", chakra::kReceive},   {"COMM_COLL_NODE", chakra::kCollective}};

// Objects that follow each other become a list: chakra_jsonizer parts them by nothing.
std::string AsOneList(const std::string& text) {
  std::string list = "[";
  size_t depth = 0;
  bool is_string = false;
  bool is_escaped = false;
  bool is_first = true;
  for (const char c : text) {
    if (is_string) {
      is_string = c != '"' || is_escaped;
      is_escaped = c == '\\' && !is_escaped;
    } else if (c == '"') {
      is_string = true;
    } else if (c == '{' || c == '[') {
      if (depth++ == 0 && !std::exchange(is_first, false)) list += ',';
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
    list += c;
  }
  return list + "]";
}

// protobuf writes 64-bit numbers in quotes.
std::optional<double> NumberOfValue(const ChakraValue& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

class ChakraJsonReader {
 public:
  ChakraJsonReader(const std::string& path, uint32_t rank) : path_(path), rank_(rank) {}

  ChakraContents Read(const TakeNode& take) {
    const std::string text = ReadInputFile(path_);
    Fnv1a fingerprint;
    fingerprint.Add(text);
    contents_.fingerprint = fingerprint.hash();
    const JsonDocument document = JsonDocument::FromText(AsOneList(text), path_);
    const ChakraValue& all = document.value();
    if (all.empty() || !all.front().is_object()) Fail("expected a Chakra trace");
    if (all.front().contains("workload_graph")) {
      const ChakraValue& graph = all.front().at("workload_graph");
      if (!graph.is_array()) Fail("expected a list of nodes at \"workload_graph\"");
      contents_.header.version = "0.0.4";
      for (const ChakraValue& node : graph) take(contents_.header, OldNode(node));
      return std::move(contents_);
    }
    for (const ChakraValue& object : all) {
      if (!object.is_object()) Fail("expected a list of objects");
      if (object.contains("version") && !object.contains("id"))
        contents_.header.version = VisibleText(TextAt(object, "version"));
      else
        take(contents_.header, NewNode(object));
    }
    return std::move(contents_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(fmt::format("{}: rank {}: {}", path_, rank_, what));
  }

  static std::string TextAt(const ChakraValue& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return "";
    return found->is_string() ? found->get<std::string>() : found->dump();
  }
  // Not negative.
  double NumberAt(const ChakraValue& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) return 0;
    const std::optional<double> number = NumberOfValue(*found);
    constexpr double kMost = 0x1p53;
    if (!number || !(*number >= 0 && *number <= kMost))
      Fail(fmt::format("node {}: found no number of 0 or more at \"{}\"", count_, key));
    return *number;
  }
  void AddBefore(const ChakraValue& object, const char* key, ChakraNode* node) const {
    const auto found = object.find(key);
    if (found == object.end()) return;
    if (!found->is_array()) Fail(fmt::format("node {}: expected a list at \"{}\"", count_, key));
    for (const ChakraValue& id : *found) {
      const std::optional<double> number = NumberOfValue(id);
      if (!number || !(*number >= 0 && *number <= 0x1p53))
        Fail(fmt::format("node {}: expected numbers of nodes at \"{}\"", count_, key));
      node->before.push_back(static_cast<uint64_t>(*number));
    }
  }
  uint32_t TypeAt(const ChakraValue& object, const char* key) const {
    const std::string name = TextAt(object, key);
    for (const auto& [known, type] : kNodeTypeNames)
      if (name == known) return type;
    const double type = NumberAt(object, key);
    if (!(type <= 0x1p31))
      Fail(fmt::format("node {}: found no kind of node at \"{}\"", count_, key));
    return static_cast<uint32_t>(type);
  }

  void AddAttribute(const std::string& name, const ChakraValue& value, ChakraNode* node) {
    static const std::vector<std::pair<std::string_view, std::optional<double> ChakraNode::*>>
        numbers = {{chakra::kNumOps, &ChakraNode::num_ops},
                   {chakra::kTensorSize, &ChakraNode::tensor_size},
                   {chakra::kCommType, &ChakraNode::comm_type},
                   {chakra::kCommSize, &ChakraNode::comm_size},
                   {chakra::kCommSource, &ChakraNode::comm_source},
                   {chakra::kCommTarget, &ChakraNode::comm_target},
                   {chakra::kCommTag, &ChakraNode::comm_tag}};
    const std::optional<double> number = NumberOfValue(value);
    for (const auto& [known, member] : numbers) {
      if (name != known) continue;
      if (!number || !(*number >= 0) || std::isinf(*number))
        Fail(fmt::format("node {}: found no number of 0 or more at \"{}\"", count_, name));
      node->*member = *number;
      return;
    }
    if (name == chakra::kIsCpuOp)
      node->is_cpu_op = number.value_or(0) != 0;
    else if (name == chakra::kGroupName)
      node->group =
          value.is_string() ? value.get<std::string>() : fmt::format("{:g}", number.value_or(0));
    else
      contents_.unknown.insert(VisibleText(name));
  }

  ChakraNode OldNode(const ChakraValue& object) {
    if (!object.is_object()) Fail("expected nodes at \"workload_graph\"");
    ChakraNode node;
    node.offset = count_++;
    node.id = static_cast<uint64_t>(NumberAt(object, "Id"));
    node.name = VisibleText(TextAt(object, "Name"));
    node.type = TypeAt(object, "NodeType");
    node.microseconds = static_cast<uint64_t>(NumberAt(object, "runtime"));
    AddBefore(object, "data_deps", &node);
    AddBefore(object, "ctrl_deps", &node);
    for (const auto& [key, value] : object.items()) {
      constexpr std::string_view kOwn[] = {"Id",      "Name",      "NodeType",
                                           "runtime", "data_deps", "ctrl_deps"};
      if (std::find(std::begin(kOwn), std::end(kOwn), key) == std::end(kOwn))
        AddAttribute(key, value, &node);
    }
    return node;
  }

  ChakraNode NewNode(const ChakraValue& object) {
    ChakraNode node;
    node.offset = count_++;
    node.id = static_cast<uint64_t>(NumberAt(object, "id"));
    node.name = VisibleText(TextAt(object, "name"));
    node.type = TypeAt(object, "type");
    node.microseconds = static_cast<uint64_t>(NumberAt(object, "durationMicros"));
    AddBefore(object, "ctrlDeps", &node);
    AddBefore(object, "dataDeps", &node);
    const auto attributes = object.find("attr");
    if (attributes == object.end()) return node;
    for (const ChakraValue& attribute : *attributes) {
      if (!attribute.is_object()) Fail(fmt::format("node {}: expected attributes", count_));
      for (const auto& [key, value] : attribute.items())
        if (key.ends_with("Val")) AddAttribute(TextAt(attribute, "name"), value, &node);
    }
    return node;
  }

  const std::string path_;
  const uint32_t rank_;
  uint64_t count_ = 0;
  ChakraContents contents_;
};

}  // namespace

ChakraJson ChakraJsonOf(const std::string& path) {
  constexpr size_t kHead = 4096;
  std::ifstream file(path, std::ios::binary);
  std::string head(kHead, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const auto has = [&](const char* word) { return head.find(word) != std::string::npos; };
  if (has("\"workload_graph\"")) return ChakraJson::kTrace;
  if (has("\"schema\"") && (has("\"nodes\"") || has("\"pid\""))) return ChakraJson::kHostTrace;
  return has("\"version\"") || has("\"durationMicros\"") || has("\"attr\"") ? ChakraJson::kTrace
                                                                            : ChakraJson::kGroups;
}

ChakraContents ReadChakraJson(const std::string& path, uint32_t rank, const TakeNode& take) {
  return ChakraJsonReader(path, rank).Read(take);
}

}  // namespace rehearse
