#include "tools/foreign/traces/chakra/chakra_file.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/traces/chakra/chakra_format.h"

namespace rehearse {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr uint64_t kLargestMessage = uint64_t{64} << 20;

// A message that is not what it should be.
class WrongMessage : public std::exception {
 public:
  const char* what() const noexcept override { return "found a field of another kind"; }
};

void Expect(const pbf_reader& message, pbf_wire_type type) {
  if (message.wire_type() != type) throw WrongMessage();
}
uint64_t Number(pbf_reader* message) {
  Expect(*message, pbf_wire_type::varint);
  return message->get_uint64();
}
std::string_view Text(pbf_reader* message) {
  Expect(*message, pbf_wire_type::length_delimited);
  const protozero::data_view view = message->get_view();
  return {view.data(), view.size()};
}

struct Attribute {
  std::string_view name;
  std::optional<double> number;
  std::optional<std::string_view> text;
};

double NumberOf(pbf_reader* message) {
  switch (message->tag()) {
    case chakra::kAttributeDouble:
      Expect(*message, pbf_wire_type::fixed64);
      return message->get_double();
    case chakra::kAttributeFloat:
      Expect(*message, pbf_wire_type::fixed32);
      return message->get_float();
    case chakra::kAttributeFixed32:
      Expect(*message, pbf_wire_type::fixed32);
      return message->get_fixed32();
    case chakra::kAttributeSfixed32:
      Expect(*message, pbf_wire_type::fixed32);
      return message->get_sfixed32();
    case chakra::kAttributeFixed64:
      Expect(*message, pbf_wire_type::fixed64);
      return static_cast<double>(message->get_fixed64());
    case chakra::kAttributeSfixed64:
      Expect(*message, pbf_wire_type::fixed64);
      return static_cast<double>(message->get_sfixed64());
    case chakra::kAttributeSint32:
    case chakra::kAttributeSint64:
      Expect(*message, pbf_wire_type::varint);
      return static_cast<double>(message->get_sint64());
    case chakra::kAttributeInt32:
    case chakra::kAttributeInt64:
      return static_cast<double>(static_cast<int64_t>(Number(message)));
    default:
      return static_cast<double>(Number(message));
  }
}

Attribute ReadAttribute(std::string_view bytes) {
  pbf_reader message(bytes.data(), bytes.size());
  Attribute attribute;
  while (message.next()) {
    switch (message.tag()) {
      case chakra::kAttributeName:
        attribute.name = Text(&message);
        break;
      case chakra::kAttributeString:
      case chakra::kAttributeBytes:
        attribute.text = Text(&message);
        break;
      case chakra::kAttributeDouble:
      case chakra::kAttributeFloat:
      case chakra::kAttributeInt32:
      case chakra::kAttributeInt64:
      case chakra::kAttributeUint32:
      case chakra::kAttributeUint64:
      case chakra::kAttributeSint32:
      case chakra::kAttributeSint64:
      case chakra::kAttributeFixed32:
      case chakra::kAttributeFixed64:
      case chakra::kAttributeSfixed32:
      case chakra::kAttributeSfixed64:
      case chakra::kAttributeBool:
        attribute.number = NumberOf(&message);
        break;
      default:
        message.skip();
    }
  }
  return attribute;
}

void AddHeaderAttribute(const Attribute& attribute, ChakraHeader* header) {
  const auto count = [&] {
    constexpr double kMost = 0x1p53;
    const double number = attribute.number.value_or(-1);
    if (!(number >= 0 && number <= kMost)) throw WrongMessage();
    return static_cast<uint64_t>(number);
  };
  if (attribute.name == chakra::kOurSchedule)
    header->schedule = std::string(attribute.text.value_or(""));
  else if (attribute.name == chakra::kOurRole)
    header->role = attribute.text.value_or("");
  else if (attribute.name == chakra::kOurPlace)
    header->place = count();
  else if (attribute.name == chakra::kOurRoles)
    header->roles = count();
  else if (attribute.name == chakra::kOurRanks)
    header->ranks = count();
  else if (attribute.name == chakra::kOurNodes)
    header->nodes = count();
}

ChakraHeader ReadHeader(const std::string& bytes) {
  pbf_reader message(bytes);
  ChakraHeader header;
  while (message.next()) {
    switch (message.tag()) {
      case chakra::kHeaderVersion:
        header.version = VisibleText(Text(&message));
        break;
      case chakra::kHeaderAttribute:
        AddHeaderAttribute(ReadAttribute(Text(&message)), &header);
        break;
      default:
        message.skip();
    }
  }
  return header;
}

class NodeReader {
 public:
  NodeReader(ChakraNode* node, ChakraContents* contents) : node_(*node), contents_(*contents) {}

  void Read(const std::string& bytes) {
    pbf_reader message(bytes);
    std::string_view inputs;
    while (message.next()) {
      switch (message.tag()) {
        case chakra::kNodeId:
          node_.id = Number(&message);
          break;
        case chakra::kNodeName:
          node_.name = VisibleText(Text(&message));
          break;
        case chakra::kNodeType:
          node_.type = static_cast<uint32_t>(Number(&message));
          break;
        case chakra::kNodeControlDependencies:
        case chakra::kNodeDataDependencies:
          AddDependencies(&message);
          break;
        case chakra::kNodeDuration:
          node_.microseconds = Number(&message);
          break;
        case chakra::kNodeAttribute:
          Add(ReadAttribute(Text(&message)));
          break;
        case chakra::kNodeInputs:
          inputs = Text(&message);
          break;
        case chakra::kNodeStorage:
          node_.has_storage = true;
          message.skip();
          break;
        default:
          message.skip();
      }
    }
    if (node_.name == chakra::kGroupsNode) NoteGroups(inputs);
  }

 private:
  void AddDependencies(pbf_reader* message) {
    if (message->wire_type() == pbf_wire_type::varint) {
      node_.before.push_back(message->get_uint64());
      return;
    }
    Expect(*message, pbf_wire_type::length_delimited);
    for (const uint64_t id : message->get_packed_uint64()) node_.before.push_back(id);
  }

  void NoteGroups(std::string_view inputs) {
    pbf_reader message(inputs.data(), inputs.size());
    while (message.next()) {
      if (message.tag() == chakra::kInputValues)
        contents_.groups.push_back({node_.id, node_.offset, std::string(Text(&message))});
      else
        message.skip();
    }
  }

  void Add(const Attribute& attribute) {
    static const std::vector<std::pair<std::string_view, std::optional<double> ChakraNode::*>>
        numbers = {{chakra::kNumOps, &ChakraNode::num_ops},
                   {chakra::kTensorSize, &ChakraNode::tensor_size},
                   {chakra::kCommType, &ChakraNode::comm_type},
                   {chakra::kCommSize, &ChakraNode::comm_size},
                   {chakra::kCommSource, &ChakraNode::comm_source},
                   {chakra::kCommTarget, &ChakraNode::comm_target},
                   {chakra::kCommTag, &ChakraNode::comm_tag}};
    for (const auto& [name, member] : numbers) {
      if (attribute.name != name) continue;
      // Also refuses what is not a number.
      if (!(attribute.number.value_or(-1) >= 0) || std::isinf(*attribute.number))
        throw Error(fmt::format("found no number of 0 or more at \"{}\"", name));
      node_.*member = attribute.number;
      return;
    }
    if (attribute.name == chakra::kIsCpuOp)
      node_.is_cpu_op = attribute.number.value_or(0) != 0;
    else if (attribute.name == chakra::kGroupName)
      node_.group = attribute.number ? fmt::format("{:g}", *attribute.number)
                                     : std::string(attribute.text.value_or(""));
    else if (attribute.name == chakra::kOurOp)
      node_.op = std::string(attribute.text.value_or(""));
    else if (!attribute.name.starts_with(chakra::kOurs))
      contents_.unknown.insert(VisibleText(attribute.name));
  }

  ChakraNode& node_;
  ChakraContents& contents_;
};

// Tells files apart, and only in this process: eight bytes at a time, since traces have gigabytes.
// Each step is one-to-one, so files that differ in one place never have the same. The last bytes
// are filled up with zeros, so their number counts, too.
class Fingerprint {
 public:
  void Add(std::string_view bytes) {
    AddWord(bytes.size());
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, sizeof(uint64_t));
      uint64_t word = 0;
      std::memcpy(&word, part.data(), part.size());
      AddWord(word);
      bytes.remove_prefix(part.size());
    }
  }
  uint64_t hash() const { return hash_; }

 private:
  void AddWord(uint64_t word) {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    constexpr int kHalf = 32;
    hash_ = (hash_ ^ word) * kOdd;
    hash_ ^= hash_ >> kHalf;
  }

  uint64_t hash_ = 1;
};

// The messages of a file, one after the other.
class MessageStream {
 public:
  MessageStream(const std::string& path, uint32_t rank)
      : path_(path), rank_(rank), file_(path, std::ios::binary) {
    std::error_code ignored;
    if (!file_ || std::filesystem::is_directory(path, ignored))
      throw Error(fmt::format("cannot read {}", path));
  }

  // False at the end.
  bool Next(std::string* message) {
    begin_ = offset_;
    constexpr int kBits = 7;
    uint64_t size = 0;
    for (int shift = 0;; shift += kBits) {
      const int byte = file_.rdbuf()->sbumpc();
      if (byte == std::char_traits<char>::eof()) {
        if (offset_ == begin_) return false;
        Fail("the file ends in the size of a message");
      }
      const char read = static_cast<char>(byte);
      Took({&read, 1});
      size |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (size > kLargestMessage || shift > 4 * kBits)
        Fail("found a message of more than 64 MiB, expected a Chakra trace");
      if ((byte & 0x80) == 0) break;
    }
    message->resize(size);
    const auto wanted = static_cast<std::streamsize>(size);
    const std::streamsize found = file_.rdbuf()->sgetn(message->data(), wanted);
    if (found < wanted)
      Fail(fmt::format("the file ends after {} of the {} bytes of a message", found, size));
    Took(*message);
    return true;
  }

  // Where the latest message begins, its size included.
  uint64_t begin() const { return begin_; }
  uint64_t fingerprint() const { return fingerprint_.hash(); }

  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(fmt::format("{}: rank {}, byte {}: {}", path_, rank_, begin_, what));
  }

 private:
  void Took(std::string_view bytes) {
    fingerprint_.Add(bytes);
    offset_ += bytes.size();
  }

  std::string path_;
  uint32_t rank_;
  std::ifstream file_;
  uint64_t offset_ = 0;
  uint64_t begin_ = 0;
  Fingerprint fingerprint_;
};

}  // namespace

std::string ChakraPlace(const std::string& path, uint32_t rank, uint64_t node, uint64_t offset) {
  return fmt::format("{}: rank {}, node {} at byte {}", path, rank, node, offset);
}

ChakraContents ReadChakraFile(const std::string& path, uint32_t rank, const TakeNode& take) {
  MessageStream stream(path, rank);
  ChakraContents contents;
  std::string message;
  if (!stream.Next(&message)) stream.Fail("the file is empty, expected a Chakra trace");
  try {
    contents.header = ReadHeader(message);
  } catch (const std::exception& error) {
    stream.Fail(fmt::format("expected the GlobalMetadata of a Chakra trace: {}", error.what()));
  }
  uint64_t count = 0;
  while (stream.Next(&message)) {
    ChakraNode node;
    node.offset = stream.begin();
    try {
      NodeReader(&node, &contents).Read(message);
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}: expected a Node: {}",
                              ChakraPlace(path, rank, node.id, node.offset), error.what()));
    }
    take(contents.header, std::move(node));
    ++count;
  }
  if (contents.header.schedule && count != contents.header.nodes) {
    throw Error(fmt::format("{}: rank {}: found {} nodes, expected {}: the file is not complete",
                            path, rank, count, contents.header.nodes));
  }
  contents.fingerprint = stream.fingerprint();
  return contents;
}

}  // namespace rehearse
