#include "store/pickle.h"

#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/strings.h"

namespace samebits {
namespace {

using Node = PickleNode;
using Kind = PickleNode::Kind;

constexpr size_t kMaxNodes = 4'000'000;

struct NamedType {
  const char* name;
  DType dtype;
};
constexpr NamedType kStorages[] = {
    {"FloatStorage", DType::kF32}, {"DoubleStorage", DType::kF64},      {"HalfStorage", DType::kF16},
    {"LongStorage", DType::kI64},  {"BFloat16Storage", DType::kBF16},   {"IntStorage", DType::kI32},
    {"ShortStorage", DType::kI16}, {"CharStorage", DType::kI8},         {"ByteStorage", DType::kU8},
    {"BoolStorage", DType::kBool}, {"ComplexFloatStorage", DType::kC64}};
constexpr NamedType kDTypes[] = {{"float32", DType::kF32},
                                 {"float64", DType::kF64},
                                 {"float16", DType::kF16},
                                 {"bfloat16", DType::kBF16},
                                 {"int64", DType::kI64},
                                 {"int32", DType::kI32},
                                 {"int16", DType::kI16},
                                 {"int8", DType::kI8},
                                 {"uint8", DType::kU8},
                                 {"uint16", DType::kU16},
                                 {"uint32", DType::kU32},
                                 {"uint64", DType::kU64},
                                 {"bool", DType::kBool},
                                 {"complex64", DType::kC64},
                                 {"float8_e4m3fn", DType::kF8E4M3},
                                 {"float8_e5m2", DType::kF8E5M2},
                                 {"float8_e8m0fnu", DType::kF8E8M0},
                                 {"float8_e4m3fnuz", DType::kF8E4M3FNUZ},
                                 {"float8_e5m2fnuz", DType::kF8E5M2FNUZ}};

template <size_t n>
const NamedType* FindType(const NamedType (&table)[n], std::string_view name) {
  for (const NamedType& t : table)
    if (name == t.name) return &t;
  return nullptr;
}

// Everything a pickle may name. The text after the module is the whole name: no attribute is ever looked up.
bool Allowed(const std::string& global) {
  static const char* const kCalls[] = {"collections OrderedDict",
                                       "torch._utils _rebuild_tensor_v2",
                                       "torch._utils _rebuild_tensor_v3",
                                       "torch._utils _rebuild_parameter",
                                       "torch Size",
                                       "torch.storage UntypedStorage",
                                       "torch device",
                                       "torch UntypedStorage"};
  for (const char* call : kCalls)
    if (global == call) return true;
  if (global.rfind("torch ", 0) != 0) return false;
  const std::string name = global.substr(6);
  return FindType(kStorages, name) || FindType(kDTypes, name);
}

class Machine {
 public:
  Machine(const uint8_t* data, uint64_t size, const std::string& label) : data_(data), size_(size), label_(label) {}

  Result<Pickle> Run() {
    while (true) {
      if (at_ >= size_) return Refuse("it ends before its end mark");
      const uint8_t op = data_[at_++];
      if (op == '.') break;
      const Status status = Step(op);
      if (!status.ok()) return status;
    }
    if (at_ != size_) return Refuse("bytes follow its end mark");
    if (stack_.size() != 1 || Top().kind == Kind::kMark) return Refuse("it does not end with one value");
    Pickle out;
    out.root = stack_[0];
    out.nodes = std::move(nodes_);
    return out;
  }

 private:
  Status Refuse(const std::string& why) const {
    return Error(Format("%s: its pickle cannot be read: %s (byte %llu)", label_.c_str(), why.c_str(),
                        static_cast<unsigned long long>(at_)));
  }
  Node& Top() { return nodes_[stack_.back()]; }

  bool Get(int n, uint64_t* out) {
    if (static_cast<uint64_t>(n) > size_ - at_) return false;
    *out = 0;
    for (int i = 0; i < n; ++i) *out |= static_cast<uint64_t>(data_[at_ + static_cast<uint64_t>(i)]) << (8 * i);
    at_ += static_cast<uint64_t>(n);
    return true;
  }
  bool Line(std::string* out) {
    const void* end = std::memchr(data_ + at_, '\n', size_ - at_);
    if (end == nullptr) return false;
    const uint64_t n = static_cast<uint64_t>(static_cast<const uint8_t*>(end) - (data_ + at_));
    out->assign(reinterpret_cast<const char*>(data_ + at_), n);
    at_ += n + 1;
    return true;
  }

  Status Push(Node node) {
    if (nodes_.size() >= kMaxNodes) return Refuse("it holds more than " + std::to_string(kMaxNodes) + " values");
    nodes_.push_back(std::move(node));
    stack_.push_back(static_cast<uint32_t>(nodes_.size() - 1));
    return Ok();
  }
  Status PushInt(int64_t v, Kind kind = Kind::kInt) {
    Node n;
    n.kind = kind;
    n.integer = v;
    return Push(std::move(n));
  }
  Status PushText(int length_bytes, Kind kind) {
    uint64_t n = 0;
    if (!Get(length_bytes, &n) || n > size_ - at_) return Refuse("a text ends behind the end of the file");
    Node node;
    node.kind = kind;
    node.text.assign(reinterpret_cast<const char*>(data_ + at_), n);
    at_ += n;
    return Push(std::move(node));
  }
  Status PushLong(int length_bytes) {
    uint64_t n = 0;
    if (!Get(length_bytes, &n) || n > size_ - at_) return Refuse("an integer ends behind the end of the file");
    if (n > 256) return Refuse("an integer has more than 256 bytes");
    Node node;
    node.kind = Kind::kInt;
    if (n <= 8) {
      uint64_t v = n > 0 && data_[at_ + n - 1] & 0x80 ? ~uint64_t{0} : 0;
      for (uint64_t i = 0; i < n; ++i) {
        v &= ~(uint64_t{0xff} << (8 * i));
        v |= static_cast<uint64_t>(data_[at_ + i]) << (8 * i);
      }
      node.integer = static_cast<int64_t>(v);
    } else {
      node.kind = Kind::kText;
      for (uint64_t i = n; i-- > 0;) node.text += Format("%02x", data_[at_ + i]);
    }
    at_ += n;
    return Push(std::move(node));
  }
  // The values above the last mark, which is removed with them.
  bool PopMark(std::vector<uint32_t>* out) {
    for (size_t i = stack_.size(); i-- > 0;)
      if (nodes_[stack_[i]].kind == Kind::kMark) {
        out->assign(stack_.begin() + static_cast<std::ptrdiff_t>(i) + 1, stack_.end());
        stack_.resize(i);
        return true;
      }
    return false;
  }
  bool Pop(uint32_t* out) {
    if (stack_.empty() || Top().kind == Kind::kMark) return false;
    *out = stack_.back();
    stack_.pop_back();
    return true;
  }
  Status PushSequence(std::vector<uint32_t> items, Kind kind = Kind::kSequence) {
    Node n;
    n.kind = kind;
    n.children = std::move(items);
    return Push(std::move(n));
  }
  Status PushTuple(size_t count) {
    std::vector<uint32_t> items(count);
    for (size_t i = count; i-- > 0;)
      if (!Pop(&items[i])) return Refuse("its stack runs empty");
    return PushSequence(std::move(items));
  }
  Status Extend(std::vector<uint32_t> items, Kind kind) {
    if (stack_.empty() || Top().kind != kind) return Refuse("items are added to something that cannot hold them");
    if (kind == Kind::kDict && items.size() % 2 != 0) return Refuse("a dictionary key has no value");
    std::vector<uint32_t>& children = Top().children;
    children.insert(children.end(), items.begin(), items.end());
    return Ok();
  }
  Status PushGlobal(const std::string& module, const std::string& name) {
    Node n;
    n.kind = Kind::kGlobal;
    n.text = module + " " + name;
    if (!Allowed(n.text))
      return Error(label_ + ": its pickle asks for " + module.substr(0, 100) + "." + name.substr(0, 100) +
                   ", which is not on the list of plain tensor types; nothing was run. Save plain tensors (a dict of "
                   "them) instead");
    return Push(std::move(n));
  }

  bool Integers(uint32_t index, Shape* out) const {
    if (nodes_[index].kind != Kind::kSequence) return false;
    for (const uint32_t c : nodes_[index].children) {
      if (nodes_[c].kind != Kind::kInt || nodes_[c].integer < 0) return false;
      out->push_back(nodes_[c].integer);
    }
    return true;
  }
  bool DTypeOfGlobal(uint32_t index, DType* out) const {
    const Node& n = nodes_[index];
    const NamedType* type =
        n.kind == Kind::kGlobal && n.text.rfind("torch ", 0) == 0 ? FindType(kDTypes, n.text.substr(6)) : nullptr;
    if (type) *out = type->dtype;
    return type != nullptr;
  }

  Status RebuildTensor(const std::vector<uint32_t>& args, bool typed) {
    Node t;
    t.kind = Kind::kTensor;
    const size_t fixed = typed ? 7 : 6;
    if (args.size() < fixed || args.size() > fixed + 1 || nodes_[args[0]].kind != Kind::kStorage ||
        nodes_[args[1]].kind != Kind::kInt || nodes_[args[1]].integer < 0 || !Integers(args[2], &t.shape) ||
        !Integers(args[3], &t.strides) || t.shape.size() != t.strides.size())
      return Refuse("a tensor has wrong arguments");
    const Node& storage = nodes_[args[0]];
    t.children = {args[0]};
    t.integer = nodes_[args[1]].integer;
    t.dtype = storage.dtype;
    if (typed ? !DTypeOfGlobal(args[6], &t.dtype) : storage.untyped) return Refuse("a tensor has no known dtype");
    if (args.size() > fixed) {  // {"conj": True, "neg": True}: the stored bytes would not be the values
      const Node& flags = nodes_[args[fixed]];
      if (flags.kind != Kind::kNone && !(flags.kind == Kind::kDict && flags.children.empty()))
        return Refuse("a tensor carries flags (conjugate, negative) that only torch can apply; save a contiguous copy");
    }
    return Push(std::move(t));
  }

  Status Reduce() {
    uint32_t args_at, call;
    if (!Pop(&args_at) || !Pop(&call) || nodes_[call].kind != Kind::kGlobal || nodes_[args_at].kind != Kind::kSequence)
      return Refuse("something that is not an allowed constructor is called");
    const std::vector<uint32_t> args = nodes_[args_at].children;
    const std::string& name = nodes_[call].text;
    if (name == "collections OrderedDict" && args.empty()) return PushSequence({}, Kind::kDict);
    if (name == "torch._utils _rebuild_tensor_v2") return RebuildTensor(args, false);
    if (name == "torch._utils _rebuild_tensor_v3") return RebuildTensor(args, true);
    if (name == "torch._utils _rebuild_parameter") {
      if (args.size() != 3 || nodes_[args[0]].kind != Kind::kTensor) return Refuse("a parameter has wrong arguments");
      stack_.push_back(args[0]);
      return Ok();
    }
    if (name == "torch Size" && args.size() == 1 && nodes_[args[0]].kind == Kind::kSequence) {
      stack_.push_back(args[0]);
      return Ok();
    }
    if (name == "torch device" && !args.empty() && nodes_[args[0]].kind == Kind::kText) {
      stack_.push_back(args[0]);
      return Ok();
    }
    return Refuse("\"" + name + "\" is called with wrong arguments");
  }

  // ("storage", type, key, location, number of elements)
  Status PersistentId() {
    uint32_t id;
    if (!Pop(&id) || nodes_[id].kind != Kind::kSequence || nodes_[id].children.size() != 5)
      return Refuse("a storage has wrong fields");
    const std::vector<uint32_t>& f = nodes_[id].children;
    const Node &tag = nodes_[f[0]], &type = nodes_[f[1]], &key = nodes_[f[2]], &count = nodes_[f[4]];
    if (tag.kind != Kind::kText || tag.text != "storage" || type.kind != Kind::kGlobal || key.kind != Kind::kText ||
        count.kind != Kind::kInt || count.integer < 0)
      return Refuse("a storage has wrong fields");
    Node s;
    s.kind = Kind::kStorage;
    s.text = key.text;
    s.integer = count.integer;
    const std::string name = type.text.substr(type.text.find(' ') + 1);
    const NamedType* known = FindType(kStorages, name);
    s.untyped = name == "UntypedStorage";
    if (!known && !s.untyped) return Refuse("a storage has the type " + name);
    if (known) s.dtype = known->dtype;
    return Push(std::move(s));
  }

  Status Memoize(uint64_t key) {
    if (stack_.empty() || Top().kind == Kind::kMark) return Refuse("its stack runs empty");
    memo_[key] = stack_.back();
    return Ok();
  }
  Status Recall(uint64_t key) {
    const auto it = memo_.find(key);
    if (it == memo_.end()) return Refuse("it refers to a value that is not there");
    stack_.push_back(it->second);
    return stack_.size() <= kMaxNodes ? Ok() : Refuse("its stack grows without end");
  }

  Status Step(uint8_t op) {
    uint64_t v = 0;
    std::vector<uint32_t> items;
    uint32_t a, b;
    std::string first, second;
    const auto cut = [&] { return Refuse("it is cut short"); };
    switch (op) {
      case 0x80:  // PROTO
        return Get(1, &v) && v <= 5 ? Ok() : Refuse("its protocol is unknown");
      case 0x95:  // FRAME
        return Get(8, &v) ? Ok() : cut();
      case '(': {
        Node mark;
        mark.kind = Kind::kMark;
        return Push(std::move(mark));
      }
      case '0':  // POP
        if (stack_.empty()) return Refuse("its stack runs empty");
        stack_.pop_back();
        return Ok();
      case '1':  // POP_MARK
        return PopMark(&items) ? Ok() : Refuse("a mark is missing");
      case 'N':
        return PushInt(0, Kind::kNone);
      case 0x88:
        return PushInt(1, Kind::kBool);
      case 0x89:
        return PushInt(0, Kind::kBool);
      case 'J':  // BININT
        return Get(4, &v) ? PushInt(static_cast<int32_t>(v)) : cut();
      case 'K':
        return Get(1, &v) ? PushInt(static_cast<int64_t>(v)) : cut();
      case 'M':
        return Get(2, &v) ? PushInt(static_cast<int64_t>(v)) : cut();
      case 0x8a:  // LONG1
        return PushLong(1);
      case 0x8b:  // LONG4
        return PushLong(4);
      case 'G': {  // BINFLOAT, big-endian
        if (!Get(8, &v)) return cut();
        v = __builtin_bswap64(v);
        Node n;
        n.kind = Kind::kFloat;
        std::memcpy(&n.number, &v, 8);
        return Push(std::move(n));
      }
      case 'X':
        return PushText(4, Kind::kText);
      case 0x8c:
        return PushText(1, Kind::kText);
      case 0x8d:
        return PushText(8, Kind::kText);
      case 'U':
        return PushText(1, Kind::kBytes);
      case 'T':
      case 'B':
        return PushText(4, Kind::kBytes);
      case 'C':
        return PushText(1, Kind::kBytes);
      case 0x8e:
        return PushText(8, Kind::kBytes);
      case '}':
        return PushSequence({}, Kind::kDict);
      case ']':
      case ')':
      case 0x8f:  // EMPTY_SET
        return PushSequence({});
      case 't':
      case 'l':
        return PopMark(&items) ? PushSequence(std::move(items)) : Refuse("a mark is missing");
      case 'd':
        if (!PopMark(&items) || items.size() % 2 != 0) return Refuse("a dictionary is damaged");
        return PushSequence(std::move(items), Kind::kDict);
      case 0x85:
        return PushTuple(1);
      case 0x86:
        return PushTuple(2);
      case 0x87:
        return PushTuple(3);
      case 'a':  // APPEND
        return Pop(&a) ? Extend({a}, Kind::kSequence) : Refuse("its stack runs empty");
      case 'e':   // APPENDS
      case 0x90:  // ADDITEMS
        return PopMark(&items) ? Extend(std::move(items), Kind::kSequence) : Refuse("a mark is missing");
      case 's':  // SETITEM
        return Pop(&b) && Pop(&a) ? Extend({a, b}, Kind::kDict) : Refuse("its stack runs empty");
      case 'u':  // SETITEMS
        return PopMark(&items) ? Extend(std::move(items), Kind::kDict) : Refuse("a mark is missing");
      case 'q':  // BINPUT
        return Get(1, &v) ? Memoize(v) : cut();
      case 'r':  // LONG_BINPUT
        return Get(4, &v) ? Memoize(v) : cut();
      case 0x94:  // MEMOIZE
        return Memoize(memo_.size());
      case 'h':
        return Get(1, &v) ? Recall(v) : cut();
      case 'j':
        return Get(4, &v) ? Recall(v) : cut();
      case 'c':  // GLOBAL
        return Line(&first) && Line(&second) ? PushGlobal(first, second) : cut();
      case 0x93:  // STACK_GLOBAL
        if (!Pop(&b) || !Pop(&a) || nodes_[a].kind != Kind::kText || nodes_[b].kind != Kind::kText)
          return Refuse("a name is not text");
        first = nodes_[a].text, second = nodes_[b].text;
        return PushGlobal(first, second);
      case 'Q':
        return PersistentId();
      case 'R':
        return Reduce();
      case 'b':  // BUILD: only OrderedDict's attributes (_metadata of a state_dict), which hold no tensors
        if (!Pop(&a) || stack_.empty() || Top().kind != Kind::kDict || nodes_[a].kind != Kind::kDict)
          return Refuse("an object's state is set");
        return Ok();
      default:
        return Refuse(Format("instruction 0x%02x is not allowed", op));
    }
  }

  const uint8_t* data_;
  uint64_t size_, at_ = 0;
  const std::string& label_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> stack_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

}  // namespace

Result<Pickle> ParsePickle(const uint8_t* data, uint64_t size, const std::string& label) {
  return Machine(data, size, label).Run();
}

}  // namespace samebits
