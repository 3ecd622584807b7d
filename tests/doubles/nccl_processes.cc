#include "tests/doubles/nccl_processes.h"

#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace rehearse::gpu_double {
namespace {

enum class What : uint32_t { kJoin, kSplit, kMeet, kAbort, kFault };

struct Request {
  What what = What::kFault;
  uint64_t communicator = 0;
  uint64_t number = 0;  // of the operation; of the invitation to join
  uint64_t size = 0;
  int rank = 0;  // to join with; color of a split
  int key = 0;
  Kind kind = Kind::kAllReduce;
  NcclType type = NcclType::kFp32;
  NcclReduction reduction = NcclReduction::kSum;
  int root = 0;
  uint64_t elements = 0;
  uint64_t messages = 0;
};

struct Answer {
  int status = kSuccess;
  uint64_t communicator = 0;
  int rank = 0;
  uint64_t size = 0;
};

// A message as it travels; data of sends follow.
struct Envelope {
  bool sends = false;
  int peer = 0;
  uint64_t bytes = 0;
};

// A connection; reads and writes whole things, and says whether it could.
class Wire {
 public:
  explicit Wire(int socket) : socket_(socket) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() {
    if (socket_ >= 0) close(socket_);
  }

  bool Write(const void* data, uint64_t bytes) const {
    const char* next = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = send(socket_, next, bytes, MSG_NOSIGNAL);
      if (written <= 0) return false;
      next += written;
      bytes -= static_cast<uint64_t>(written);
    }
    return true;
  }
  bool Read(void* data, uint64_t bytes) const {
    char* next = static_cast<char*>(data);
    while (bytes > 0) {
      const ssize_t got = recv(socket_, next, bytes, 0);
      if (got <= 0) return false;
      next += got;
      bytes -= static_cast<uint64_t>(got);
    }
    return true;
  }
  template <typename T>
  bool WriteValue(const T& value) const {
    return Write(&value, sizeof value);
  }
  template <typename T>
  bool ReadValue(T* value) const {
    return Read(value, sizeof *value);
  }

 private:
  int socket_;
};

// Linux's names that are no files: nothing is left of a process that is killed.
sockaddr_un AddressOf(const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path + 1, name, sizeof address.sun_path - 2);
  return address;
}

int Connect(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = AddressOf(path.c_str());
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return socket;
  close(socket);
  return -1;
}

// ---- where the ranks meet -----------------------------------------------------------------------

Communicator* Named(uint64_t communicator) { return reinterpret_cast<Communicator*>(communicator); }

Answer AnswerOf(int status, const Communicator* made) {
  if (made == nullptr) return {status, 0, 0, 0};
  return {status, reinterpret_cast<uint64_t>(made), made->rank, made->size};
}

// One operation of a rank of another process, on copies of its data.
void ServeOperation(const Wire& wire, const Request& request) {
  Communicator* communicator = Named(request.communicator);
  Operation own{request.kind, nullptr,           nullptr,      request.elements,
                request.type, request.reduction, request.root, {}};
  const uint64_t size = SizeOf(request.type);
  std::vector<char> from;
  std::vector<char> to;
  std::vector<std::vector<char>> data(request.messages);
  if (request.kind == Kind::kMessages) {
    for (std::vector<char>& bytes : data) {
      Envelope envelope;
      if (!wire.ReadValue(&envelope)) return;
      bytes.resize(envelope.bytes);
      if (envelope.sends && !wire.Read(bytes.data(), bytes.size())) return;
      own.messages.push_back(
          {envelope.sends, envelope.peer, bytes.data(), envelope.bytes, nullptr});
    }
  } else {
    from.resize(ElementsFrom(own, communicator->rank, communicator->size) * size);
    to.resize(ElementsTo(own, communicator->rank, communicator->size) * size);
    if (!wire.Read(from.data(), from.size())) return;
    own.from = from.data();
    own.to = to.data();
  }
  Meet(communicator, request.number, &own);
  Answer answer;
  answer.status = communicator->is_aborted ? kPretendedFailure : kSuccess;
  wire.WriteValue(answer);
  wire.Write(to.data(), to.size());
  for (const Message& message : own.messages) {
    if (!message.sends) wire.Write(message.data, message.bytes);
  }
}

void Serve(int socket) {
  const Wire wire(socket);
  Request request;
  if (!wire.ReadValue(&request)) return;
  Communicator* made = nullptr;
  switch (request.what) {
    case What::kJoin: {
      const int status = JoinById(request.number, request.size, request.rank, &made);
      wire.WriteValue(AnswerOf(status, made));
      return;
    }
    case What::kSplit: {
      const int status = SplitHere(Named(request.communicator), request.rank, request.key, &made);
      wire.WriteValue(AnswerOf(status, made));
      return;
    }
    case What::kMeet:
      ServeOperation(wire, request);
      return;
    case What::kAbort:
      AbortHere(Named(request.communicator));
      wire.WriteValue(Answer{});
      return;
    case What::kFault:
      wire.WriteValue(Answer{.status = Named(request.communicator)->fault});
      return;
  }
}

// The name that this process listens on; made with the first id, gone with the process.
const std::string& ListeningPath() {
  static const std::string path = [] {
    std::string name = fmt::format("rehearse-nccl-double-{}", getpid());
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = AddressOf(name.c_str());
    if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(socket, SOMAXCONN) != 0) {
      return std::string();
    }
    std::thread([socket] {
      while (true) {
        const int connection = accept(socket, nullptr, nullptr);
        if (connection >= 0) std::thread(Serve, connection).detach();
      }
    }).detach();
    return name;
  }();
  return path;
}

// ---- the other processes ------------------------------------------------------------------------

// Nothing if the other process is gone.
std::optional<Answer> Ask(const std::string& path, const Request& request) {
  const Wire wire(Connect(path));
  Answer answer;
  if (!wire.WriteValue(request) || !wire.ReadValue(&answer)) return std::nullopt;
  return answer;
}

int KeepElsewhere(const std::optional<Answer>& answer, const std::string& path,
                  Communicator** made) {
  *made = nullptr;
  if (!answer || answer->status != kSuccess) return kPretendedFailure;
  if (answer->communicator == 0) return kSuccess;
  auto communicator = std::make_unique<Communicator>();
  communicator->elsewhere = Elsewhere{path, answer->communicator};
  communicator->rank = answer->rank;
  communicator->size = answer->size;
  *made = Keep(std::move(communicator));
  return kSuccess;
}

// Sends the operation and receives its answer; false if none came back.
bool Travel(Communicator* communicator, const Request& request, Operation* own) {
  const Wire wire(Connect(communicator->elsewhere->path));
  bool works = wire.WriteValue(request);
  const uint64_t size = SizeOf(own->type);
  if (own->kind == Kind::kMessages) {
    for (const Message& message : own->messages) {
      works = works && wire.WriteValue(Envelope{message.sends, message.peer, message.bytes});
      if (message.sends) works = works && wire.Write(message.data, message.bytes);
    }
  } else {
    works = works && wire.Write(own->from,
                                ElementsFrom(*own, communicator->rank, communicator->size) * size);
  }
  Answer answer;
  if (!works || !wire.ReadValue(&answer) || answer.status != kSuccess) return false;
  if (own->kind != Kind::kMessages)
    return wire.Read(own->to, ElementsTo(*own, communicator->rank, communicator->size) * size);
  for (const Message& message : own->messages) {
    if (!message.sends && !wire.Read(message.data, message.bytes)) return false;
  }
  return true;
}

}  // namespace

NcclUniqueId WriteInvitation(uint64_t number) {
  Invitation invitation;
  invitation.number = number;
  invitation.process = getpid();
  if (std::getenv("REHEARSE_DOUBLE_PROCESSES") != nullptr)
    std::strncpy(invitation.path, ListeningPath().c_str(), sizeof invitation.path - 1);
  NcclUniqueId id{};
  static_assert(sizeof invitation <= sizeof id);
  std::memcpy(&id, &invitation, sizeof invitation);
  return id;
}

Invitation ReadInvitation(const NcclUniqueId& id) {
  Invitation invitation;
  std::memcpy(static_cast<void*>(&invitation), &id, sizeof invitation);
  return invitation;
}

int JoinElsewhere(const Invitation& invitation, size_t size, int rank, Communicator** made) {
  Request request;
  request.what = What::kJoin;
  request.number = invitation.number;
  request.size = size;
  request.rank = rank;
  return KeepElsewhere(Ask(invitation.path, request), invitation.path, made);
}

int SplitElsewhere(Communicator* parent, int color, int key, Communicator** made) {
  Request request;
  request.what = What::kSplit;
  request.communicator = parent->elsewhere->communicator;
  request.rank = color;
  request.key = key;
  return KeepElsewhere(Ask(parent->elsewhere->path, request), parent->elsewhere->path, made);
}

void MeetElsewhere(Communicator* communicator, uint64_t number, Operation* own) {
  Request request;
  request.what = What::kMeet;
  request.communicator = communicator->elsewhere->communicator;
  request.number = number;
  request.kind = own->kind;
  request.type = own->type;
  request.reduction = own->reduction;
  request.root = own->root;
  request.elements = own->elements;
  request.messages = own->messages.size();
  if (!Travel(communicator, request, own)) communicator->fault = kPretendedFailure;
}

void AbortElsewhere(Communicator* communicator) {
  Request request;
  request.what = What::kAbort;
  request.communicator = communicator->elsewhere->communicator;
  Ask(communicator->elsewhere->path, request);
}

int FaultElsewhere(Communicator* communicator) {
  if (communicator->fault != 0) return communicator->fault;
  Request request;
  request.what = What::kFault;
  request.communicator = communicator->elsewhere->communicator;
  const std::optional<Answer> answer = Ask(communicator->elsewhere->path, request);
  return answer ? answer->status : kPretendedFailure;
}

}  // namespace rehearse::gpu_double
