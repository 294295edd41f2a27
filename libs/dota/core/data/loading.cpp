#include "data/loading.hpp"

namespace dota {

float nullable(const Node& n, const std::string& key) {
  const Node& v = n.at(key);
  if (v.is(Node::Type::Null)) return 0;
  return n.num(key);
}

std::vector<float> numbers(const Node& n, const std::string& key) {
  const Node* v = n.find(key);
  if (!v) return {};
  if (v->is(Node::Type::Number)) return {static_cast<float>(v->number)};
  if (!v->is(Node::Type::List)) throw std::runtime_error("key '" + key + "' is not a list of numbers");
  std::vector<float> out;
  for (const Node& e : v->list) {
    if (!e.is(Node::Type::Number)) throw std::runtime_error("key '" + key + "' is not a list of numbers");
    out.push_back(static_cast<float>(e.number));
  }
  return out;
}

std::vector<std::string> strings(const Node& n, const std::string& key) {
  const Node* v = n.find(key);
  if (!v) return {};
  if (!v->is(Node::Type::List)) throw std::runtime_error("key '" + key + "' is not a list of names");
  std::vector<std::string> out;
  for (const Node& e : v->list) {
    if (!e.is(Node::Type::String)) throw std::runtime_error("key '" + key + "' is not a list of names");
    out.push_back(e.string);
  }
  return out;
}

int whole(const Node& n, const std::string& key, int otherwise) {
  return static_cast<int>(n.num(key, static_cast<float>(otherwise)));
}

int index_of(const std::unordered_map<std::string, int>& index, const std::string& name, const char* what) {
  const auto at = index.find(name);
  if (at == index.end()) throw std::runtime_error(std::string(what) + " '" + name + "' is not in the data");
  return at->second;
}

}  // namespace dota
